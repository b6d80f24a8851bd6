import { isReservedChannel, MAX_CHANNEL_BYTES } from './channel.ts'

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
  const glob = pattern.replace(/\*+/g, '*')
  // Even if every second character is a star, the others are more than a name can hold.
  if (glob.length > 2 * MAX_CHANNEL_BYTES + 1) return () => false
  const wanted = Array.from(glob)
  return (channel) => matchesGlob(wanted, Array.from(channel))
}

/**
 * By hand, because a regular expression made of a caller's stars takes time without bound. Only the last star ever needs
 * to take more: what the ones before it have taken fits already.
 */
function matchesGlob(wanted: readonly string[], characters: readonly string[]): boolean {
  let next = 0
  let at = 0
  let star = -1
  let takenUntil = 0
  while (at < characters.length) {
    const token = wanted[next]
    if (token === '*') {
      star = next++
      takenUntil = at
    } else if (token === '?' || token === characters[at]) {
      next++
      at++
    } else if (star !== -1) {
      next = star + 1
      at = ++takenUntil
    } else {
      return false
    }
  }
  return next === wanted.length || (next === wanted.length - 1 && wanted[next] === '*')
}
