import type { CesqlValue } from './value.ts'

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%'
export type EqualityOperator = '=' | '!=' | '<>'
export type OrderOperator = '<' | '<=' | '>' | '>='
export type LogicOperator = 'AND' | 'OR' | 'XOR'
export type BinaryOperator = ArithmeticOperator | EqualityOperator | OrderOperator | LogicOperator

/** A parsed expression. */
export type CesqlNode =
  | { readonly kind: 'literal'; readonly value: CesqlValue }
  | { readonly kind: 'attribute'; readonly name: string }
  | { readonly kind: 'exists'; readonly name: string }
  | { readonly kind: 'not'; readonly operand: CesqlNode }
  | { readonly kind: 'minus'; readonly operand: CesqlNode }
  | { readonly kind: 'binary'; readonly operator: BinaryOperator; readonly left: CesqlNode; readonly right: CesqlNode }
  | { readonly kind: 'like'; readonly operand: CesqlNode; readonly pattern: string; readonly negated: boolean }
  | { readonly kind: 'in'; readonly operand: CesqlNode; readonly set: readonly CesqlNode[]; readonly negated: boolean }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly CesqlNode[]; readonly at: number }
