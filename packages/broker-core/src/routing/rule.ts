import type { ChannelType } from '../channel.ts'
import type { OutgoingMessage } from '../message.ts'
import { attributesOf } from './attributes.ts'
import { compileCesql } from './cesql/cesql.ts'
import type { ChannelTemplate } from './channel-template.ts'
import { CesqlParseError } from './errors.ts'

/** The channel types that can be routed from and to. Commands and queries cannot, because they need an answer. */
export const ROUTABLE_TYPES = ['queues', 'events', 'events_store'] as const satisfies readonly ChannelType[]

export type RoutableType = (typeof ROUTABLE_TYPES)[number]

export const KEY_TYPES = ['regex', 'cesql'] as const

export type KeyType = (typeof KEY_TYPES)[number]

/** The maximum length of a regular expression, in UTF-16 units. */
const MAX_REGEX_LENGTH = 4096

/** Returns whether a rule applies to a message. A string is the reason why the condition could not be evaluated. */
export type Condition = (type: RoutableType, channel: string, message: OutgoingMessage) => boolean | string

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
