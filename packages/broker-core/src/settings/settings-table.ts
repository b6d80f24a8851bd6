import type { ChannelType } from '../channel.ts'
import { isReservedChannel } from '../channel.ts'
import { globMatcher } from '../glob.ts'
import type { ChannelSettings, SettingMember, SettingsEntry } from './channel-settings.ts'
import { SETTING_MEMBERS } from './channel-settings.ts'

/** The names whose settings are remembered. */
const MAX_REMEMBERED = 10_000

const NONE: ChannelSettings = Object.freeze({})

/** The entry that a member comes from. */
export interface SettingOrigin {
  readonly match: string
  readonly source: SettingsEntry['source']
}

interface Rule {
  readonly entry: SettingsEntry
  readonly matches: (name: string) => boolean
}

/**
 * The settings of all channels. Each member of a channel's settings comes whole from the most specific entry that has
 * it: the channel's name, then the longest text before a wildcard; the API before the file. The entries can be replaced
 * while the broker runs, and apply to messages that wait.
 */
export class SettingsTable {
  #rules: ReadonlyMap<ChannelType, readonly Rule[]> = new Map()
  /** By type and name. Cleared by each change. */
  readonly #remembered = new Map<string, ChannelSettings>()
  readonly #listeners = new Set<() => void>()
  #entries: readonly SettingsEntry[] = []
  #members: ReadonlySet<SettingMember> = new Set()
  #known = false

  /** `true` after the first entries, or an empty list of them, were put in force. */
  get known(): boolean {
    return this.#known
  }

  get entries(): readonly SettingsEntry[] {
    return this.#entries
  }

  /** Returns whether any entry has the member, so that periodic work can be left out. */
  uses(member: SettingMember): boolean {
    return this.#members.has(member)
  }

  /** `false` if there is no entry, so that calls can skip the search. */
  get active(): boolean {
    return this.#rules.size > 0
  }

  /** Returns the settings of a channel, from memory for names that were asked for before. */
  of(type: ChannelType, channel: string): ChannelSettings {
    const rules = this.#rules.get(type)
    if (rules === undefined || isReservedChannel(channel)) return NONE
    const key = `${type} ${channel}`
    let settings = this.#remembered.get(key)
    if (settings === undefined) {
      settings = settingsIn(rules.filter(({ matches }) => matches(channel)))
      if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear()
      this.#remembered.set(key, settings)
    }
    return settings
  }

  /** Returns the entry that each member of a channel's settings comes from. */
  origins(type: ChannelType, channel: string): Partial<Record<SettingMember, SettingOrigin>> {
    const origins: Partial<Record<SettingMember, SettingOrigin>> = {}
    if (isReservedChannel(channel)) return origins
    for (const { entry, matches } of this.#rules.get(type) ?? []) {
      if (!matches(channel)) continue
      const { match, source } = entry
      for (const member of SETTING_MEMBERS) if (entry[member] !== undefined) origins[member] ??= { match, source }
    }
    return origins
  }

  /** Returns whether an entry for channels of a type meets a condition. */
  some(type: ChannelType, condition: (entry: SettingsEntry) => boolean): boolean {
    return this.#rules.get(type)?.some(({ entry }) => condition(entry)) === true
  }

  replace(entries: readonly SettingsEntry[]): void {
    const rules = entries.toSorted(bySpecificity).map((entry) => ({ entry, matches: globMatcher(entry.match) }))
    this.#known = true
    this.#entries = entries
    this.#members = new Set(SETTING_MEMBERS.filter((member) => entries.some((entry) => entry[member])))
    this.#rules = Map.groupBy(rules, ({ entry }) => entry.type)
    this.#remembered.clear()
    for (const listener of this.#listeners) listener()
  }

  /** Returns a table in which an entry is replaced, or added. One without members has the effect of a removed entry. */
  with(entry: SettingsEntry): SettingsTable {
    const { type, match, source } = entry
    const others = this.#entries.filter((each) => each.type !== type || each.match !== match || each.source !== source)
    const table = new SettingsTable()
    table.replace([...others, entry])
    return table
  }

  /** Calls back after each change; the returned function ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** @param rules The most specific one first */
function settingsIn(rules: readonly Rule[]): ChannelSettings {
  if (rules.length === 0) return NONE
  const first = <T>(member: (entry: SettingsEntry) => T | null | undefined): T | undefined =>
    rules.map(({ entry }) => member(entry)).find((value) => value !== undefined) ?? undefined
  return {
    description: first(({ description }) => description),
    retry: first(({ retry }) => retry),
    consumers: first(({ consumers }) => consumers),
    groups: first(({ groups }) => groups),
    retention: first(({ retention }) => retention),
    deduplication: first(({ deduplication }) => deduplication),
    schema: first(({ schema }) => schema),
    unreadable: first(({ unreadable }) => unreadable),
  }
}

/** Compares two entries: the more specific one first. */
function bySpecificity(a: SettingsEntry, b: SettingsEntry): number {
  return (
    Number(isPattern(a)) - Number(isPattern(b)) ||
    literalLength(b) - literalLength(a) ||
    b.match.length - a.match.length ||
    (a.match === b.match ? 0 : a.match < b.match ? -1 : 1) ||
    (a.source === b.source ? 0 : a.source === 'api' ? -1 : 1)
  )
}

/** Returns whether the entry is for a pattern, not for one name. */
export function isPattern({ match }: { readonly match: string }): boolean {
  return /[*?]/.test(match)
}

/** The number of characters before the first wildcard. */
function literalLength({ match }: SettingsEntry): number {
  const at = match.search(/[*?]/)
  return at === -1 ? match.length : at
}
