import { damageReason } from '../store/damage.ts'
import { isFull } from '../store/sqlite-code.ts'
import { DamagedError } from './damaged.ts'
import type { OperationRefusal } from './operations.ts'

/** The error of an operation that is not allowed, thrown before it has written anything. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly refusal: OperationRefusal

  constructor(code: 'QUEUE_FULL' | 'CONFLICT' | 'GROUP_LIMIT', message: string, details: OperationRefusal['details']) {
    super(message)
    this.refusal = { kind: 'refused', code, message, details }
  }
}

/** Converts an error that failed only one operation to a refusal. */
export function refusalOf(error: unknown): OperationRefusal {
  if (error instanceof RefusedError) return error.refusal
  if (error instanceof DamagedError) {
    const { place, cause } = error
    return { kind: 'refused', code: 'DAMAGED', message: damageReason(cause), details: {}, place }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { kind: 'refused', code: isFull(error) ? 'DISK_FULL' : 'FAILED', message, details: {} }
}
