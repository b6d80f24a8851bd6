import { Buffer } from 'node:buffer'

import { BrokerError } from './errors.ts'
import { globMatcher } from './glob.ts'
import { codePoint, controlCharacterIn, withoutControls } from './text.ts'

/** The five channel types. Each has its own name space. */
export const CHANNEL_TYPES = ['queues', 'events', 'events_store', 'commands', 'queries'] as const

export type ChannelType = (typeof CHANNEL_TYPES)[number]

/** The channel types whose messages an engine stores. */
export type StoredType = Extract<ChannelType, 'queues' | 'events_store'>

/**
 * The prefix of the broker's own channels; no call of a user reaches them.
 */
export const RESERVED_PREFIX = '_AGENTS_.'

/** The maximum length of a channel name, in bytes of UTF-8. */
export const MAX_CHANNEL_BYTES = 255

export function isReservedChannel(name: string): boolean {
  return name.startsWith(RESERVED_PREFIX)
}

const PLAIN = /^[A-Za-z0-9_/-]+(?:\.[A-Za-z0-9_/-]+)*$/

/**
 * Returns the reason why a channel name is not valid, or undefined if it is valid. A name has 1 to 255 bytes of UTF-8,
 * no control characters (including those for the text direction), no leading or trailing blanks, no empty token between
 * dots, and no token that is `*` or `>`.
 */
export function channelNameProblem(name: string): string | undefined {
  if (name.length <= MAX_CHANNEL_BYTES && PLAIN.test(name)) return undefined
  return subscriptionPatternProblem(name) ?? wildcardProblem(name)
}

/**
 * Validates like {@link channelNameProblem}, but allows the token `*`, and `>` as the last token: for subscriptions to
 * events.
 */
export function subscriptionPatternProblem(pattern: string): string | undefined {
  if (pattern === '') return 'it is empty'
  // A UTF-16 unit is at least one byte: the length alone rejects a huge string without encoding it.
  if (pattern.length > MAX_CHANNEL_BYTES || Buffer.byteLength(pattern) > MAX_CHANNEL_BYTES) {
    return `it is longer than ${MAX_CHANNEL_BYTES} bytes`
  }
  if (!pattern.isWellFormed()) return 'it is not valid Unicode'
  const control = controlCharacterIn(pattern)
  if (control !== undefined) return `it holds the control character ${codePoint(control)}`
  if (pattern.trim() !== pattern) return 'it begins or ends with a blank'
  const tokens = pattern.split('.')
  if (tokens.includes('')) return 'it has an empty part before, between or after dots'
  const rest = tokens.indexOf('>')
  if (rest !== -1 && rest !== tokens.length - 1) return 'the wildcard > is not its last part'
  return undefined
}

function wildcardProblem(name: string): string | undefined {
  const token = name.split('.').find((part) => part === '*' || part === '>')
  return token && `its part ${token} is a wildcard, which only subscriptions to events may use`
}

/** Throws if a channel name is not valid. @throws BrokerError CHANNEL_INVALID */
export function assertChannelName(name: string): void {
  refuse('channel name', name, channelNameProblem(name))
}

/** Throws if a subscription pattern is not valid. @throws BrokerError CHANNEL_INVALID */
export function assertSubscriptionPattern(pattern: string): void {
  refuse('channel pattern', pattern, subscriptionPatternProblem(pattern))
}

function refuse(what: string, name: string, reason: string | undefined): void {
  if (reason === undefined) return
  // Characters that change the text direction would make the error text misleading too.
  const shown = withoutControls(name.length > 64 ? `${name.slice(0, 64)}…` : name)
  throw new BrokerError('CHANNEL_INVALID', `invalid ${what} ${JSON.stringify(shown)}: ${reason}`, {
    channel: shown,
    reason,
  })
}

/** Returns whether a subscription pattern has wildcards. Without them it is the name of one channel. */
export function isWildcardPattern(pattern: string): boolean {
  return pattern.split('.').some((token) => token === '*' || token === '>')
}

/**
 * Returns a matcher for a subscription pattern over dot-separated channel names: `*` matches one token, `>` as the last
 * token matches one or more. A wildcard never matches a channel of the broker: a pattern matches `_AGENTS_.` channels
 * only if it contains that prefix.
 */
export function channelMatcher(pattern: string): (channel: string) => boolean {
  const tokens = pattern.split('.')
  const open = tokens.at(-1) === '>'
  const fixed = open ? tokens.slice(0, -1) : tokens
  const namesReserved = isReservedChannel(pattern)
  return (channel) => {
    if (isReservedChannel(channel) && !namesReserved) return false
    const parts = channel.split('.')
    if (open ? parts.length <= fixed.length : parts.length !== fixed.length) return false
    return fixed.every((token, i) => token === '*' || token === parts[i])
  }
}

/**
 * Returns a matcher for the `pattern` argument of `channel_list`: with `*` or `?` a glob over the whole name, where `*`
 * also matches dots; otherwise a prefix.
 */
export function channelListMatcher(pattern: string): (channel: string) => boolean {
  if (!/[*?]/.test(pattern)) return (channel) => channel.startsWith(pattern)
  return globMatcher(pattern)
}
