import { CesqlParseError } from '../errors.ts'
import type { CesqlFunction } from './functions.ts'
import { FUNCTIONS } from './functions.ts'
import { compileLike } from './like.ts'
import type {
  ArithmeticOperator,
  BinaryOperator,
  CesqlNode,
  EqualityOperator,
  LogicOperator,
  OrderOperator,
} from './parser.ts'
import type { CesqlRun, CesqlValue, Evaluate, ValueType } from './value.ts'
import { fail, isInteger, MAX_STRING_LENGTH, takeSteps, toBoolean, toInteger, toText, typeOf } from './value.ts'

/** A closure that evaluates a node, and the type of its result. The type of an attribute depends on the event. */
export interface Compiled {
  readonly evaluate: Evaluate
  readonly type: ValueType | 'any'
}

const ZERO: Readonly<Record<ValueType, CesqlValue>> = { string: '', integer: 0, boolean: false }

/**
 * Compiles a parsed expression to closures. Evaluation fails fast: after the first error every operation returns the
 * zero value of its type immediately.
 * @throws CesqlParseError for an unknown function
 */
export function compile(node: CesqlNode): Compiled {
  switch (node.kind) {
    case 'literal':
      return { evaluate: () => node.value, type: typeOf(node.value) }
    case 'attribute':
      return { evaluate: (run) => attribute(run, node.name), type: 'any' }
    case 'exists':
      return { evaluate: (run) => run.attribute(node.name) !== undefined, type: 'boolean' }
    case 'not': {
      const operand = boolean(node.operand)
      return { evaluate: (run) => !operand(run) && run.error === undefined, type: 'boolean' }
    }
    case 'minus': {
      const operand = integer(node.operand)
      return { evaluate: (run) => checked(run, -operand(run)), type: 'integer' }
    }
    case 'like':
      return { evaluate: like(node.operand, node.pattern, node.negated), type: 'boolean' }
    case 'in':
      return { evaluate: isIn(node.operand, node.set, node.negated), type: 'boolean' }
    case 'call':
      return call(node.name, node.args, node.at)
    case 'binary':
      return binary(node.operator, node.left, node.right)
    default:
      return node satisfies never
  }
}

function binary(operator: BinaryOperator, left: CesqlNode, right: CesqlNode): Compiled {
  switch (operator) {
    case 'AND':
    case 'OR':
    case 'XOR':
      return { evaluate: logic(operator, left, right), type: 'boolean' }
    case '=':
    case '!=':
    case '<>':
      return { evaluate: equality(operator, left, right), type: 'boolean' }
    case '<':
    case '<=':
    case '>':
    case '>=':
      return { evaluate: order(operator, left, right), type: 'boolean' }
    default:
      return { evaluate: arithmetic(operator, left, right), type: 'integer' }
  }
}

function attribute(run: CesqlRun, name: string): CesqlValue {
  const value = run.attribute(name)
  if (value === undefined) return fail(run, 'missingAttribute', `the event has no attribute ${name}`, false)
  if (typeof value !== 'string') return value
  if (value.length > MAX_STRING_LENGTH) {
    return fail(run, 'generic', `the attribute ${name} is longer than ${MAX_STRING_LENGTH} characters`, false)
  }
  return takeSteps(run, value.length) && value
}

/** Evaluates the node as a boolean; false after an error. */
function boolean(node: CesqlNode): (run: CesqlRun) => boolean {
  const { evaluate } = compile(node)
  return (run) => {
    const value = evaluate(run)
    return run.error === undefined && toBoolean(run, value)
  }
}

/** Evaluates the node as an integer; 0 after an error. */
function integer(node: CesqlNode): (run: CesqlRun) => number {
  const { evaluate } = compile(node)
  return (run) => {
    const value = evaluate(run)
    return run.error === undefined ? toInteger(run, value) : 0
  }
}

/** Returns a result of arithmetic; 0 after an error, or if it is not a 32-bit integer. */
function checked(run: CesqlRun, result: number): number {
  if (run.error) return 0
  return isInteger(result) ? result + 0 : fail(run, 'math', 'a result is not a 32-bit integer', 0)
}

function logic(operator: LogicOperator, leftNode: CesqlNode, rightNode: CesqlNode): Evaluate {
  const left = boolean(leftNode)
  const right = boolean(rightNode)
  if (operator === 'AND') return (run) => left(run) && right(run)
  if (operator === 'OR') return (run) => left(run) || (run.error === undefined && right(run))
  return (run) => {
    const first = left(run)
    return run.error === undefined && first !== right(run) && run.error === undefined
  }
}

/** Compares two values. The type of the right operand applies, and the left one is cast to it (CESQL 3.7). */
function equality(operator: EqualityOperator, leftNode: CesqlNode, rightNode: CesqlNode): Evaluate {
  const left = compile(leftNode).evaluate
  const right = compile(rightNode).evaluate
  const wanted = operator === '='
  return (run) => {
    const first = left(run)
    if (run.error) return false
    const second = right(run)
    if (run.error) return false
    const equal = castLike(run, first, second) === second
    return run.error === undefined && equal === wanted
  }
}

/** Casts a value to the type of another. */
function castLike(run: CesqlRun, value: CesqlValue, model: CesqlValue): CesqlValue {
  if (typeof model === 'string') return toText(value)
  return typeof model === 'number' ? toInteger(run, value) : toBoolean(run, value)
}

const ORDER: Readonly<Record<OrderOperator, (x: number, y: number) => boolean>> = {
  '<': (x, y) => x < y,
  '<=': (x, y) => x <= y,
  '>': (x, y) => x > y,
  '>=': (x, y) => x >= y,
}

function order(operator: OrderOperator, leftNode: CesqlNode, rightNode: CesqlNode): Evaluate {
  const left = integer(leftNode)
  const right = integer(rightNode)
  const holds = ORDER[operator]
  return (run) => {
    const x = left(run)
    if (run.error) return false
    const y = right(run)
    return run.error === undefined && holds(x, y)
  }
}

const ARITHMETIC: Readonly<Record<ArithmeticOperator, (x: number, y: number) => number>> = {
  '+': (x, y) => x + y,
  '-': (x, y) => x - y,
  // Inexact only far outside the range, where the result is an error.
  '*': (x, y) => x * y,
  '/': (x, y) => Math.trunc(x / y),
  '%': (x, y) => x % y,
}

function arithmetic(operator: ArithmeticOperator, leftNode: CesqlNode, rightNode: CesqlNode): Evaluate {
  const left = integer(leftNode)
  const right = integer(rightNode)
  const calculate = ARITHMETIC[operator]
  const divides = operator === '/' || operator === '%'
  return (run) => {
    const x = left(run)
    if (run.error) return 0
    const y = right(run)
    if (run.error) return 0
    if (divides && y === 0) return fail(run, 'math', `${x} ${operator} 0 is not defined`, 0)
    return checked(run, calculate(x, y))
  }
}

function like(node: CesqlNode, pattern: string, negated: boolean): Evaluate {
  const { evaluate } = compile(node)
  const { matches, stepsPerCharacter } = compileLike(pattern)
  return (run) => {
    const value = evaluate(run)
    if (run.error) return false
    const text = toText(value)
    return takeSteps(run, text.length * stepsPerCharacter) && matches(text) !== negated
  }
}

/**
 * Compares with the values of the set in order, each cast to the type of the left operand (CESQL 3.7), until one
 * matches.
 */
function isIn(node: CesqlNode, set: readonly CesqlNode[], negated: boolean): Evaluate {
  const { evaluate } = compile(node)
  const members = set.map((member) => compile(member).evaluate)
  return (run) => {
    const value = evaluate(run)
    if (run.error) return false
    for (const member of members) {
      const candidate = member(run)
      if (run.error) return false
      const equal = castLike(run, candidate, value) === value
      if (run.error) return false
      if (equal) return !negated
    }
    return negated
  }
}

function call(name: string, args: readonly CesqlNode[], at: number): Compiled {
  const definition = FUNCTIONS.get(name)
  if (!definition) {
    const known = [...FUNCTIONS.keys()].join(', ')
    throw new CesqlParseError(`there is no function ${name}; the functions are ${known}`, at, 'missingFunction')
  }
  const { parameters, rest, required = parameters.length, result } = definition
  if (args.length < required || (rest === undefined && args.length > parameters.length)) {
    throw new CesqlParseError(
      `there is no function ${name} of ${args.length} arguments; it takes ${arity(definition)}`,
      at,
      'missingFunction',
    )
  }
  const evaluators = args.map((arg, i) => argument(arg, parameters[i] ?? rest ?? 'any'))
  const zero = ZERO[result]
  const evaluate: Evaluate = (run) => {
    const values: CesqlValue[] = []
    for (const evaluator of evaluators) {
      values.push(evaluator(run))
      if (run.error) return zero
    }
    const value = definition.call(run, values)
    return typeof value === 'string' && !takeSteps(run, value.length) ? zero : value
  }
  return { evaluate, type: result }
}

function arity({ parameters, required = parameters.length, rest }: CesqlFunction): string {
  if (rest !== undefined) return `${required} or more`
  return required === parameters.length ? String(required) : `${required} to ${parameters.length}`
}

function argument(node: CesqlNode, type: ValueType | 'any'): Evaluate {
  if (type === 'integer') return integer(node)
  if (type === 'boolean') return boolean(node)
  const { evaluate } = compile(node)
  return type === 'any' ? evaluate : (run) => toText(evaluate(run))
}
