import { isReservedChannel } from './channel.ts'
import { globMatcher } from './glob-matcher.ts'

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
