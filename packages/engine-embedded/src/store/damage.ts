import type { StoredType } from '@signalbox/broker-core/engine'
import { BrokerError } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'

import type { EmbeddedEngineProblem } from '../options.ts'
import { sqliteCode } from './sqlite.ts'

/** A channel with rows that cannot be read. */
export interface DamagedChannel {
  readonly type: StoredType
  readonly name: string
}

/** The place of the damage: a channel, or a part of the store that channels share. */
export type DamagedPlace = { readonly channel: DamagedChannel } | { readonly part: string }

/** The parts of the store that channels share. */
export const DELAYED = 'delayed messages'
export const EXPIRY = 'expiry of messages'
export const TOMBSTONES = 'tombstones'
export const DEDUPLICATION = 'deduplication'
export const GROUP_POSITIONS = 'positions of durable groups'
export const DELETED = 'rows of deleted channels'
export const FREE_SPACE = 'free space'

/** The maximum numbers of channels named in one text, and of channels that are logged separately. */
const MAX_NAMED = 10
const MAX_LOGGED = 100

const ADVICE =
  'Stop the server and run "signalbox recover" to copy the readable messages, or restore a backup; other channels continue to work'

/** The known damage. Each place is reported once, and counts as damaged until the store is opened again. */
export class Damage {
  readonly #onProblem: (problem: EmbeddedEngineProblem) => void
  readonly #channels = new Map<string, DamagedChannel>()
  readonly #parts = new Map<string, string>()
  #logged = 0

  constructor(onProblem: (problem: EmbeddedEngineProblem) => void) {
    this.#onProblem = onProblem
  }

  /**
   * Records a place that cannot be read, and returns the error for the call that found it.
   * @param channels The channels that share the part
   */
  note(place: DamagedPlace, reason: string, channels: readonly DamagedChannel[] = []): BrokerError {
    if ('channel' in place) this.#noteChannel(place.channel, reason)
    else this.#notePart(place.part, reason, channels)
    return damagedError('channel' in place ? shown(place.channel) : place.part)
  }

  #noteChannel(channel: DamagedChannel, reason: string): void {
    const key = keyOf(channel.type, channel.name)
    if (this.#channels.has(key)) return
    this.#channels.set(key, channel)
    this.#report([channel], `${shown(channel)} cannot be read and no longer accepts messages`, reason)
  }

  #notePart(part: string, reason: string, channels: readonly DamagedChannel[]): void {
    if (this.#parts.has(part)) return
    const text = channels.length === 0 ? part : `${part} (${list(channels)})`
    this.#parts.set(part, text)
    this.#report(channels.slice(0, MAX_NAMED), `${text} cannot be read`, reason)
  }

  #report(channels: readonly DamagedChannel[], what: string, reason: string): void {
    if (this.#logged++ >= MAX_LOGGED) return
    this.#onProblem({ kind: 'damaged', message: `the store is damaged: ${what} (${reason}). ${ADVICE}`, channels })
  }

  has(type: StoredType, name: string): boolean {
    return this.#channels.size > 0 && this.#channels.has(keyOf(type, name))
  }

  /** Returns the reason why a channel or a part of the store accepts no writes; undefined if no damage is known. */
  refusal(type: StoredType, name: string): BrokerError | undefined {
    return this.has(type, name) ? damagedError(shown({ type, name })) : undefined
  }

  partRefusal(part: string): BrokerError | undefined {
    return this.#parts.has(part) ? damagedError(part) : undefined
  }

  /** Removes the damage of a deleted channel: a new channel with its name uses other pages. */
  forget(type: StoredType, name: string): void {
    this.#channels.delete(keyOf(type, name))
  }

  /** The text for health checks; undefined if no damage is known. */
  get detail(): string | undefined {
    if (this.#channels.size === 0 && this.#parts.size === 0) return undefined
    const channels = this.#channels.size === 0 ? [] : [list([...this.#channels.values()])]
    return `damaged: ${[...channels, ...this.#parts.values()].join('; ')}`
  }
}

function keyOf(type: StoredType, name: string): string {
  return `${type} ${name}`
}

function shown({ type, name }: DamagedChannel): string {
  return `${type} ${JSON.stringify(name)}`
}

function list(channels: readonly DamagedChannel[]): string {
  const named = channels.slice(0, MAX_NAMED).map(shown).join(', ')
  return channels.length > MAX_NAMED ? `${named} and ${channels.length - MAX_NAMED} more` : named
}

/** Returns the reason as a text, which can be passed between threads. */
export function damageReason(error: unknown): string {
  const code = sqliteCode(error)
  return code === '' ? messageOf(error) : `${messageOf(error)}, ${code}`
}

function damagedError(what: string): BrokerError {
  const reason = `the store is damaged: ${what} cannot be read`
  return new BrokerError('ENGINE_UNAVAILABLE', `the storage engine is not available: ${reason}; contact the operator`, {
    reason,
  })
}
