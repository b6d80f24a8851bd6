import type { ChannelType } from '../channel.ts'
import { channelNameProblem, isReservedChannel, RESERVED_PREFIX } from '../channel.ts'
import type { OutgoingMessage, Tags } from '../message.ts'
import { attributesOf } from './attributes.ts'
import { compileCesql } from './cesql/cesql.ts'
import { CesqlParseError } from './errors.ts'

/** The channel types that can be routed from and to. Commands and queries cannot, because they need an answer. */
export const ROUTABLE_TYPES = ['queues', 'events', 'events_store'] as const satisfies readonly ChannelType[]

export type RoutableType = (typeof ROUTABLE_TYPES)[number]

export const KEY_TYPES = ['regex', 'cesql'] as const

export type KeyType = (typeof KEY_TYPES)[number]

/** The maximum length of a regular expression, in UTF-16 units. */
const MAX_REGEX_LENGTH = 4096

/** Returns whether a rule applies to a message. A string is the reason why the condition could not be evaluated. */
type Condition = (type: RoutableType, channel: string, message: OutgoingMessage) => boolean | string

export interface RoutingTarget {
  readonly type: RoutableType
  readonly channel: ChannelTemplate
}

/** One entry of a routing table. */
export interface RoutingRule {
  /** The index in the table, from 0. */
  readonly index: number
  readonly key: string
  readonly keyType: KeyType
  readonly matches: Condition
  readonly targets: readonly RoutingTarget[]
}

/** Compiles a rule's key. Returns a string with the reason if the key is not valid. */
export function compileCondition(key: string, keyType: KeyType): Condition | string {
  return keyType === 'regex' ? channelRegex(key) : cesqlCondition(key)
}

/**
 * Compiles a pattern that must match the whole channel name. The pattern is the operator's, and names have at most 255
 * bytes. A pattern with nested repetition such as `(a+)+` can still take very long for a name that a sender chose.
 */
function channelRegex(key: string): Condition | string {
  if (key.length > MAX_REGEX_LENGTH) {
    return `the regular expression has ${key.length} characters; at most ${MAX_REGEX_LENGTH} are allowed`
  }
  try {
    // Without the parentheses first: "a)|(b" is not valid, but it would be within parentheses.
    void new RegExp(key, 'u')
    const regex = new RegExp(`^(?:${key})$`, 'u')
    return (_, channel) => regex.test(channel)
  } catch (error) {
    return error instanceof SyntaxError ? error.message : String(error)
  }
}

function cesqlCondition(key: string): Condition | string {
  try {
    const expression = compileCesql(key)
    if (expression.type !== 'boolean') {
      return 'the expression must give true or false, by a comparison, LIKE, IN or EXISTS for example'
    }
    return (type, channel, message) => {
      const { value, error } = expression.evaluate(attributesOf(type, channel, message))
      return error ? error.message : value === true
    }
  } catch (error) {
    if (error instanceof CesqlParseError) return error.message
    throw error
  }
}

/** The channel name for a message, or the reason why the message has no target. */
type Resolved = { readonly channel: string } | { readonly problem: ChannelProblem }

interface ChannelProblem {
  readonly reason: 'placeholder' | 'channel'
  readonly detail: string
}

/**
 * The channel name of a target, with placeholders: `{ce_<attribute>}` is replaced by the message's tag of that name.
 */
interface ChannelTemplate {
  readonly source: string
  resolve(tags: Tags): Resolved
}

const PLACEHOLDER = /\{(ce_[a-z0-9]+)\}/

/** Compiles a template. Returns a string with the reason if the template is not valid. */
export function channelTemplate(source: string): ChannelTemplate | string {
  // The parts alternate between text and tag names: splitting by a pattern with one group keeps the group's text.
  const parts = source.split(PLACEHOLDER)
  const texts = parts.filter((_, i) => i % 2 === 0)
  if (texts.some((text) => /[{}]/.test(text))) {
    return 'braces may only hold a placeholder {ce_<attribute>}, the attribute in lower-case letters and digits'
  }
  const example = channelProblem(parts.map((part, i) => (i % 2 === 0 ? part : 'x')).join(''))
  if (example !== undefined) return example
  if (parts.length === 1) {
    const resolved: Resolved = { channel: source }
    return { source, resolve: () => resolved }
  }
  return { source, resolve: (tags) => fill(parts, tags) }
}

function fill(parts: readonly string[], tags: Tags): Resolved {
  let channel = ''
  for (const [i, part] of parts.entries()) {
    const text = i % 2 === 0 ? part : tags[part]
    if (text === undefined) return { problem: { reason: 'placeholder', detail: `the message has no tag ${part}` } }
    channel += text
  }
  const problem = channelProblem(channel)
  if (problem === undefined) return { channel }
  const shown = channel.length > 64 ? `${channel.slice(0, 64)}…` : channel
  return { problem: { reason: 'channel', detail: `channel ${JSON.stringify(shown)}: ${problem}` } }
}

/** Rejects internal channels as targets, also if a placeholder contains the name (M8). */
function channelProblem(channel: string): string | undefined {
  if (isReservedChannel(channel)) return `channels beginning with ${RESERVED_PREFIX} belong to the broker`
  return channelNameProblem(channel)
}
