import type { Value } from './value.ts'

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%'
export type EqualityOperator = '=' | '!=' | '<>'
export type OrderOperator = '<' | '<=' | '>' | '>='
export type LogicOperator = 'AND' | 'OR' | 'XOR'
export type BinaryOperator = ArithmeticOperator | EqualityOperator | OrderOperator | LogicOperator

/** A parsed expression. */
export type Node =
  | { readonly kind: 'literal'; readonly value: Value }
  | { readonly kind: 'attribute'; readonly name: string }
  | { readonly kind: 'exists'; readonly name: string }
  | { readonly kind: 'not'; readonly operand: Node }
  | { readonly kind: 'minus'; readonly operand: Node }
  | { readonly kind: 'binary'; readonly operator: BinaryOperator; readonly left: Node; readonly right: Node }
  | { readonly kind: 'like'; readonly operand: Node; readonly pattern: string; readonly negated: boolean }
  | { readonly kind: 'in'; readonly operand: Node; readonly set: readonly Node[]; readonly negated: boolean }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Node[]; readonly at: number }
