"""GPUs as cuDNN describes them in JSON: any machine can make plans for them."""

_COMMON = {
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536,
    "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152,
    "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "pciDeviceId": 0,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
    "cudaDeviceId": 0,
    "driverVer": 13000,
}

A100 = _COMMON | {
    "deviceName": "NVIDIA A100-SXM4-80GB",
    "deviceVer": 800,
    "multiProcessorCount": 108,
    "maxSharedMemoryPerBlockOptin": 166912,
    "totalGlobalMem": 84974239744,
    "smClockRateKHz": 1410000,
    "memClockRateKHz": 1593000,
    "memoryBusWidth": 5120,
    "l2CacheSize": 41943040,
}
H200 = _COMMON | {
    "deviceName": "NVIDIA H200",
    "deviceVer": 900,
    "multiProcessorCount": 132,
    "maxSharedMemoryPerBlockOptin": 232448,
    "totalGlobalMem": 150754820096,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 3201000,
    "memoryBusWidth": 6144,
    "l2CacheSize": 62914560,
}
B200 = _COMMON | {
    "deviceName": "NVIDIA B200",
    "deviceVer": 1000,
    "multiProcessorCount": 148,
    "maxSharedMemoryPerBlockOptin": 232448,
    "totalGlobalMem": 191503532032,
    "smClockRateKHz": 1965000,
    "memClockRateKHz": 3996000,
    "memoryBusWidth": 8192,
    "l2CacheSize": 132644864,
}
