import type { BrokerHandle, ChannelType } from '@signalbox/broker-core'

import { deadLetterOf } from '../dead-letters/dead-letter.ts'
import { findMessage } from '../messages/find-messages.ts'
import type { StoredMessage } from '../messages/shown-message.ts'
import type { StoredChannel } from '../messages/stored-messages.ts'
import type { MessageTrail, TrailStep } from './message-trail.ts'

/** The most channels, and messages in each, that a trace searches. */
export const MAX_PLACES = 8

/** The most steps of a trace. */
const MAX_STEPS = 500

/** The most rounds in which a trace follows repeated and redriven messages. */
const MAX_ROUNDS = 5

/** A channel that stores a message now. */
export interface Place extends StoredChannel {
  readonly message: StoredMessage
  /** The queue that a dead letter came from. */
  readonly source: string | undefined
}

/** Returns the steps of a message, or of a trace, and of the messages that repeat it. */
export function stepsOf(
  trail: MessageTrail,
  id: string | undefined,
  traceId: string | undefined,
): { readonly ids: readonly string[]; readonly steps: readonly TrailStep[] } {
  const ids = new Set(id === undefined ? [] : [id])
  const isMeant = (step: TrailStep): boolean =>
    ids.has(step.id) ||
    (step.other !== undefined && ids.has(step.other)) ||
    (traceId !== undefined && step.trace === traceId)
  let steps: readonly TrailStep[] = []
  for (let round = 0, known = -1; round < MAX_ROUNDS && known !== ids.size; round++) {
    known = ids.size
    steps = trail.find(isMeant).slice(-MAX_STEPS)
    for (const { id: one, other = one } of steps) ids.add(one).add(other)
  }
  return { ids: [...ids], steps: acceptedFirst(steps) }
}

/** Moves acceptances before the deliveries of their messages: an engine may deliver before it accepts. */
function acceptedFirst(steps: readonly TrailStep[]): readonly TrailStep[] {
  const ordered: TrailStep[] = []
  for (const step of steps) {
    const at = step.event === 'accepted' ? ordered.findIndex(({ id }) => id === step.id) : -1
    if (at === -1) ordered.push(step)
    else ordered.splice(at, 0, step)
  }
  return ordered
}

/** Returns the channels of the steps that store one of the messages now. */
export async function placesOf(
  broker: BrokerHandle,
  ids: readonly string[],
  steps: readonly TrailStep[],
  given: StoredChannel | undefined,
): Promise<readonly Place[]> {
  const places: Place[] = []
  for (const channel of channelsOf(steps, given)) {
    for (const id of ids.slice(0, MAX_PLACES)) {
      const message = await findMessage(broker, channel, { id })
      if (message === undefined) continue
      const source = 'receiveCount' in message ? deadLetterOf(message)?.source : undefined
      places.push({ ...channel, message, source })
    }
  }
  return places
}

function channelsOf(steps: readonly TrailStep[], given: StoredChannel | undefined): readonly StoredChannel[] {
  const channels = new Map<string, StoredChannel>()
  const add = (type: ChannelType, channel: string | undefined): void => {
    if (channel === undefined || (type !== 'queues' && type !== 'events_store')) return
    channels.set(`${type} ${channel}`, { type, channel })
  }
  if (given !== undefined) add(given.type, given.channel)
  for (const { type, channel, deadLetterQueue } of steps) {
    add(type, channel)
    add('queues', deadLetterQueue)
  }
  return [...channels.values()].slice(0, MAX_PLACES)
}
