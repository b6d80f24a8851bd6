import { Type } from 'typebox'
import { Check } from 'typebox/schema'

import { jsonOf } from '../json.ts'
import type { ChannelCounts } from './counter-table.ts'
import { countsFrom } from './counter-table.ts'
import type { LiveChange } from './live-channels.ts'

const MESSAGE = Type.Object({ node: Type.String({ pattern: '^[A-Za-z0-9_-]{16}$' }) })

/**
 * The key is the incarnation of a stored channel, or type and name of a channel in memory (C1: 255 bytes).
 */
const COUNTS = Type.Tuple([Type.String({ minLength: 1, maxLength: 300 }), Type.Object({})])

const ABOUT = Type.Object({ name: Type.String({ maxLength: 255 }), version: Type.String({ maxLength: 100 }) })

/** The name and the version of a node, for operators. */
export interface NodeDescription {
  readonly name: string
  readonly version: string
}

const LIVE_CHANGE = Type.Object({
  type: Type.Union([Type.Literal('events'), Type.Literal('commands'), Type.Literal('queries')]),
  name: Type.String(),
  exists: Type.Boolean(),
})

/** A message between nodes. Each part is validated separately; invalid parts are omitted. */
interface PeerMessage {
  readonly node: string
  /** Undefined if a node of an older version sent the message. */
  readonly about: NodeDescription | undefined
  readonly counts: readonly (readonly [string, ChannelCounts])[]
  /** The names are not validated yet. */
  readonly channels: readonly LiveChange[]
}

/** Parses a message between nodes. Returns undefined if no node of this broker sent it. */
export function readPeerMessage(text: string): PeerMessage | undefined {
  const message = jsonOf(MESSAGE, text)
  if (!message) return undefined
  const { node } = message
  return {
    node,
    about: aboutOf(message),
    counts: partsOf(message, 'figures').flatMap((part) =>
      Check(COUNTS, part) ? [[part[0], countsFrom(part[1])] as const] : [],
    ),
    channels: partsOf(message, 'channels').filter((part) => Check(LIVE_CHANGE, part)),
  }
}

function aboutOf(message: object): NodeDescription | undefined {
  if (!('about' in message) || !Check(ABOUT, message.about)) return undefined
  const { name, version } = message.about
  return { name, version }
}

function partsOf(message: object, name: string): readonly unknown[] {
  const parts: unknown = new Map<string, unknown>(Object.entries(message)).get(name)
  return Array.isArray(parts) ? parts : []
}
