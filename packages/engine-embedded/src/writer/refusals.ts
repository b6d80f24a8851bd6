import type { DamagedPlace } from '../store/damage.ts'
import { damageReason, DELAYED, FREE_SPACE, GROUP_POSITIONS } from '../store/damage.ts'
import { isDamage, isFull } from '../store/sqlite.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { Operation, OperationRefusal } from './operations.ts'

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

/** The error of an operation that found an unreadable page or row. */
export class DamagedError extends Error {
  override readonly name = 'DamagedError'
  readonly place: DamagedPlace
  /** The id of the channel whose rows are skipped from now on; undefined for a whole part of the store. */
  readonly id: number | undefined

  constructor(place: DamagedPlace, id: number | undefined, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.place = place
    this.id = id
  }
}

/** Runs work on a channel's rows. @throws DamagedError that names the channel */
export function touching<T>({ type, name, id }: StoredChannel, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw isDamage(error) ? new DamagedError({ channel: { type, name } }, id, error) : error
  }
}

/** Runs work on data that channels share, or on rows of a deleted channel (`id`). @throws DamagedError */
export function touchingPart<T>(part: string, id: number | undefined, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw isDamage(error) ? new DamagedError({ part }, id, error) : error
  }
}

/** Returns the place of damage that is known only by its operation. */
export function placeOf(operation: Operation): DamagedPlace {
  switch (operation.kind) {
    case 'send':
    case 'settle':
    case 'expire':
    case 'release':
    case 'purge':
    case 'groupQueue':
      return { channel: { type: 'queues', name: operation.channel } }
    case 'append':
      return { channel: { type: 'events_store', name: operation.channel } }
    case 'createChannel':
    case 'deleteChannel':
      return { channel: { type: operation.type, name: operation.channel } }
    case 'joinGroup':
    case 'storePositions':
      return { part: GROUP_POSITIONS }
    case 'promote':
    case 'expireDelayed':
      return { part: DELAYED }
    default:
      return { part: FREE_SPACE }
  }
}

/** The channels that the writer's periodic tasks skip, so that one damaged page does not fail each of them. */
export class SkippedChannels {
  readonly #ids = new Set<number>()
  readonly #parts = new Set<string>()
  /** The ids as a JSON array, for `json_each`. */
  ids = '[]'

  note({ place, id }: DamagedError): void {
    if (id !== undefined) {
      this.#ids.add(id)
      this.ids = JSON.stringify([...this.#ids])
    } else if ('part' in place) {
      this.#parts.add(place.part)
    }
  }

  hasId(id: number): boolean {
    return this.#ids.has(id)
  }

  hasPart(part: string): boolean {
    return this.#parts.has(part)
  }
}
