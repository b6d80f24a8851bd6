import { isReservedChannel } from './channel.ts'
import { globMatcher } from './glob-matcher.ts'

/** Whether a subscription pattern needs matching at all, or names one channel. */
export function isWildcardPattern(pattern: string): boolean {
  return pattern.split('.').some((token) => token === '*' || token === '>')
}

/**
 * A matcher for a subscription pattern over dot-separated channel names: `*` stands for one token, a last `>` for one
 * or more. A wildcard never matches a channel of the broker's own (M8): a pattern reaches `_AGENTS_.` only by naming it.
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
 * A matcher for the `pattern` argument of `channel_list` (M9): with `*` or `?` a glob over the whole name, where `*`
 * crosses dots; otherwise a prefix.
 */
export function channelListMatcher(pattern: string): (channel: string) => boolean {
  if (!/[*?]/.test(pattern)) return (channel) => channel.startsWith(pattern)
  return globMatcher(pattern)
}
