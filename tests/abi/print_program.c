/* A program as its C view has it, in C11 and with nothing but abi.h. */
#include "print_program.h"

#include <inttypes.h>

static const char* const numbers[] = {
    "integer",      "real",     "size",    "attribute", "add",        "subtract",   "multiply",   "divide",
    "floor_divide", "modulo",   "minimum", "maximum",   "shift_left", "bit_length", "to_real",    "floor",
    "ceil",         "negative", "power",   "bit_and",   "bit_or",     "bit_xor",    "shift_right"};
static const char* const comparisons[] = {"equal", "not_equal", "less", "less_equal", "same"};

static void print_bytes(const void* data, uint32_t n, FILE* to) {
  for (uint32_t i = 0; i < n; ++i) fprintf(to, "%02x", ((const unsigned char*)data)[i]);
}

static void print_dtype(DLDataType t, FILE* to) { fprintf(to, "%u.%u", t.code, t.bits); }

void print_type(const DLTensor* t, FILE* to) {
  print_dtype(t->dtype, to);
  if (t->ndim < 0) {
    fprintf(to, "?");
    return;
  }
  fprintf(to, "(");
  for (int32_t i = 0; i < t->ndim; ++i) {
    if (i) fprintf(to, ",");
    if (t->shape[i] < 0) fprintf(to, "s%" PRId64, -1 - t->shape[i]);
    else fprintf(to, "%" PRId64, t->shape[i]);
  }
  fprintf(to, ")");
}

static void print_number(const dvt_number* n, FILE* to) {
  fprintf(to, "%s", numbers[n->op]);
  if (n->is_real) fprintf(to, " real");
  if (n->op == DVT_N_INTEGER) fprintf(to, " %" PRId64, n->value.i);
  else if (n->op == DVT_N_REAL) fprintf(to, " %a", n->value.f);
  else fprintf(to, " %d", n->a);
  if (n->b >= 0) fprintf(to, " %d", n->b);
}

/* An entry of `numbers`; a literal as itself. */
static void print_entry(const dvt_program* p, int64_t entry, FILE* to) {
  const dvt_number* n = &p->numbers[entry];
  if (n->op == DVT_N_INTEGER) fprintf(to, "%" PRId64, n->value.i);
  else if (n->op == DVT_N_REAL) fprintf(to, "%a", n->value.f);
  else fprintf(to, "#%" PRId64, entry);
}

static void print_operand(const dvt_program* p, uint32_t v, FILE* to) {
  if (v == UINT32_MAX) {
    fprintf(to, " none");
    return;
  }
  const dvt_value* info = &p->info[v];
  const DLTensor* t = &p->values[v];
  if (!(info->flags & (DVT_V_CONSTANT | DVT_V_NUMBER))) {
    fprintf(to, " %u", v);
    return;
  }
  fprintf(to, " ");
  print_type(t, to);
  fprintf(to, "=");
  if (info->flags & DVT_V_NUMBER) print_entry(p, info->number, to);
  else print_bytes(t->data, (t->dtype.bits + 7u) / 8u, to);
}

static void print_attribute(const dvt_program* p, const dvt_attr* a, FILE* to) {
  switch (a->kind) {
    case DVT_A_NONE: fprintf(to, " none"); return;
    case DVT_A_I64: fprintf(to, " i:%" PRId64, a->v.i); return;
    case DVT_A_U64: fprintf(to, " u:%" PRIu64, a->v.raw); return;
    case DVT_A_F64: fprintf(to, " f:%a", a->v.f); return;
    case DVT_A_BOOL: fprintf(to, " b:%" PRId64, a->v.i); return;
    case DVT_A_STR: fprintf(to, " s:%.*s", (int)a->count, a->v.s); return;
    case DVT_A_DTYPE:
      fprintf(to, " dt:");
      print_dtype(a->v.dt, to);
      return;
    case DVT_A_SIZE:
      fprintf(to, " i:");
      print_entry(p, a->v.i, to);
      return;
    case DVT_A_REAL:
      fprintf(to, " f:");
      print_entry(p, a->v.i, to);
      return;
    case DVT_A_PROGRAM: fprintf(to, " program:%016" PRIx64, a->v.p->hash[0]); return;
    default: break;
  }
  fprintf(to, a->kind == DVT_A_F64S ? " fs:" : " is:");
  for (uint32_t k = 0; k < a->count; ++k) {
    if (k) fprintf(to, ",");
    if (a->kind == DVT_A_F64S) fprintf(to, "%a", a->v.fs[k]);
    else if (a->kind == DVT_A_SIZES) print_entry(p, a->v.is[k], to);
    else fprintf(to, "%" PRId64, a->v.is[k]);
  }
}

static void print_node(const dvt_program* p, const dvt_node* node, FILE* to) {
  fprintf(to, "node %s %u:", node->op, node->op_version);
  for (uint32_t i = 0; i < node->n_in; ++i) print_operand(p, node->in[i], to);
  fprintf(to, " ->");
  for (uint32_t i = 0; i < node->n_out; ++i) print_operand(p, node->out[i], to);
  fprintf(to, " |");
  for (uint32_t i = 0; i < node->n_attr; ++i) print_attribute(p, &node->attr[i], to);
  if (node->where) fprintf(to, " @%s", node->where);
  fprintf(to, "\n");
}

void print_program(const dvt_program* p, FILE* to) {
  for (uint32_t i = 0; i < p->n_inputs; ++i) {
    fprintf(to, "input %u ", p->inputs[i]);
    print_type(&p->values[p->inputs[i]], to);
    if (p->info[p->inputs[i]].name) fprintf(to, " %s", p->info[p->inputs[i]].name);
    fprintf(to, "\n");
  }
  for (uint32_t i = 0; i < p->n_symbols; ++i) {
    const dvt_symbol* s = &p->symbols[i];
    fprintf(to, "symbol %u: input %d axis %d hint %" PRId64, i, s->input, s->axis, s->hint);
    if (s->name) fprintf(to, " %s", s->name);
    fprintf(to, "\n");
  }
  for (uint32_t i = 0; i < p->n_guards; ++i) {
    const dvt_guard* g = &p->guards[i];
    fprintf(to, "guard before %u: %s %u %u\n", g->node, comparisons[g->compare], g->a, g->b);
  }
  for (uint32_t i = 0; i < p->n_nodes; ++i) print_node(p, p->nodes[i], to);
  /* Behind the program's own entries those may follow that only the lists of DVT_A_SIZES need. */
  for (uint32_t i = 0; i < p->n_numbers; ++i) {
    fprintf(to, "number %u: ", i);
    print_number(&p->numbers[i], to);
    fprintf(to, "\n");
  }
  for (uint32_t i = 0; i < p->n_outputs; ++i) {
    fprintf(to, "output");
    print_operand(p, p->outputs[i], to);
    fprintf(to, "\n");
  }
  for (uint32_t i = 0; i < p->n_nodes; ++i)
    for (uint32_t k = 0; k < p->nodes[i]->n_attr; ++k)
      if (p->nodes[i]->attr[k].kind == DVT_A_PROGRAM) {
        fprintf(to, "program of node %u\n", i);
        print_program(p->nodes[i]->attr[k].v.p, to);
      }
}
