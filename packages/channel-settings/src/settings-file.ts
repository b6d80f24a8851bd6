import type { SettingsEntry } from '@signalbox/broker-core'
import { problemsText, readChannelSettings } from '@signalbox/http-kit/internal'

import { MAX_ENTRIES } from './settings-log.ts'

/** The error for a list of channel settings, with every problem. */
export class ChannelSettingsError extends Error {
  override readonly name = 'ChannelSettingsError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`invalid channel settings: ${problems.join('; ')}`)
    this.problems = problems
  }
}

/**
 * Reads a list of entries, one per step, for callers that must not block their event loop for all of them.
 * @throws ChannelSettingsError with every problem
 */
export function* parseChannelSettingsSteps(input: unknown): Generator<undefined, readonly SettingsEntry[]> {
  if (!Array.isArray(input)) throw new ChannelSettingsError(['it must be an array of {type, match, …}'])
  if (input.length > MAX_ENTRIES) {
    throw new ChannelSettingsError([`it has ${input.length} entries; at most ${MAX_ENTRIES} are allowed`])
  }
  const problems: string[] = []
  const entries = new Map<string, SettingsEntry>()
  for (const [index, given] of (input as readonly unknown[]).entries()) {
    const read = readChannelSettings(given, 'file')
    if ('entry' in read) {
      const { type, match } = read.entry
      const target = `${type} ${match}`
      if (entries.has(target)) problems.push(`entry ${index}: ${type} ${JSON.stringify(match)} is listed twice`)
      entries.set(target, read.entry)
    } else {
      problems.push(`entry ${index}: ${problemsText(read.problems)}`)
    }
    yield
  }
  if (problems.length > 0) throw new ChannelSettingsError(problems)
  return [...entries.values()]
}
