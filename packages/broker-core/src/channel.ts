import { Buffer } from 'node:buffer'

import { BrokerError } from './errors.ts'
import { codePoint, controlCharacterIn, withoutControls } from './shown-text.ts'

/** The five channel types; each is a name space of its own (specification, "Message and channel shapes"). */
export const CHANNEL_TYPES = ['queues', 'events', 'events_store', 'commands', 'queries'] as const

export type ChannelType = (typeof CHANNEL_TYPES)[number]

/** Channels that begin so belong to the broker; no user call reaches them (specification, "Reserved channel prefix"). */
export const RESERVED_PREFIX = '_AGENTS_.'

/** The longest channel name, in bytes of UTF-8 (C1). */
export const MAX_CHANNEL_BYTES = 255

export function isReservedChannel(name: string): boolean {
  return name.startsWith(RESERVED_PREFIX)
}

const PLAIN = /^[A-Za-z0-9_/-]+(?:\.[A-Za-z0-9_/-]+)*$/

/**
 * Says what is wrong with a channel name (C1), or undefined when nothing is: 1–255 bytes of UTF-8, no control
 * characters (those for the direction of text included), no leading or trailing blanks, no empty dot-separated token, no token that is `*` or `>`.
 */
export function channelNameProblem(name: string): string | undefined {
  if (name.length <= MAX_CHANNEL_BYTES && PLAIN.test(name)) return undefined
  return subscriptionPatternProblem(name) ?? wildcardProblem(name)
}

/** As {@link channelNameProblem}, but tokens `*` and, as the last one, `>` are allowed: for subscriptions to events. */
export function subscriptionPatternProblem(pattern: string): string | undefined {
  if (pattern === '') return 'it is empty'
  // One UTF-16 unit is at least one byte, so the cheap test spares encoding a huge string.
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

/** @throws BrokerError CHANNEL_INVALID */
export function assertChannelName(name: string): void {
  refuse('channel name', name, channelNameProblem(name))
}

/** @throws BrokerError CHANNEL_INVALID */
export function assertSubscriptionPattern(pattern: string): void {
  refuse('channel pattern', pattern, subscriptionPatternProblem(pattern))
}

function refuse(what: string, name: string, reason: string | undefined): void {
  if (reason === undefined) return
  // An error text that is shown in another direction would mislead as the name does.
  const shown = withoutControls(name.length > 64 ? `${name.slice(0, 64)}…` : name)
  throw new BrokerError('CHANNEL_INVALID', `invalid ${what} ${JSON.stringify(shown)}: ${reason}`, {
    channel: shown,
    reason,
  })
}
