import { channelNameProblem, isReservedChannel, RESERVED_PREFIX } from '../channel.ts'
import type { Tags } from '../message.ts'

/** The channel name for a message, or the reason why there is none. */
export type Resolved = { readonly channel: string } | { readonly problem: ChannelProblem }

export interface ChannelProblem {
  readonly reason: 'placeholder' | 'channel'
  readonly detail: string
}

/**
 * The channel name of a target, with placeholders: `{ce_<attribute>}` is replaced by the message's tag of that name.
 */
export interface ChannelTemplate {
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
