import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'

import type { CommandCall } from './command.ts'
import { connectManagement } from './connection.ts'
import { CommandError, EXIT } from './errors.ts'
import type { ExitCode } from './errors.ts'
import type { JsonObject } from './json.ts'
import { isObject, objectsOf, toText } from './json.ts'
import type { ManagementClient } from './management-client.ts'
import { printResult, shown, styles, table } from './output.ts'

/** The parts of an entry that are not settings. */
const NO_SETTINGS = new Set(['type', 'match', 'source', 'revision', 'changed_by', 'changed_at', 'matched', 'dry_run'])

function settingsIn(entry: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(entry).filter(([name]) => !NO_SETTINGS.has(name)))
}

/** `signalbox channels get`: prints the settings of a channel, and the entry that each comes from. */
export async function channelsGetCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const [channel, type] = [line.word(0), line.option('type')]
  const api = await connectManagement(call)
  const { effective = {}, origins = {} } = await api.get('/api/channel_settings', { type, channel })
  const settings = Object.entries(isObject(effective) ? effective : {})
  if (line.has('json')) {
    await io.stdout.write(`${JSON.stringify({ type, channel, effective, origins })}\n`)
    return settings.length === 0 ? EXIT.NOTHING : EXIT.OK
  }
  const originOf = (member: string): string => {
    const origin: unknown = isObject(origins) ? origins[member] : undefined
    return isObject(origin) ? `${toText(origin['match'])}${origin['source'] === 'file' ? ' (file)' : ''}` : ''
  }
  const rows = settings.flatMap(([member, value]) =>
    (isObject(value) ? Object.entries(value) : [['', value] as const]).map(([part, given]) => [
      part === '' ? member : `${member}.${part}`,
      toText(given) === '' ? '-' : toText(given),
      originOf(member),
    ]),
  )
  await printTable(call, ['setting', 'value', 'from'], rows)
  if (settings.length === 0) await io.stderr.write(`signalbox channels get: ${channel} has no settings\n`)
  return settings.length === 0 ? EXIT.NOTHING : EXIT.OK
}

/** `signalbox channels settings`: lists the entries. */
export async function channelsSettingsCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const api = await connectManagement(call)
  const entries: JsonObject[] = []
  for (let cursor: string | undefined; ;) {
    const page = await api.get('/api/channel_settings', { type: line.value('type'), limit: 1000, cursor })
    entries.push(...objectsOf(page['items']))
    if (typeof page['next_cursor'] !== 'string') break
    cursor = page['next_cursor']
  }
  if (line.has('json')) {
    for (const entry of entries) await io.stdout.write(`${JSON.stringify(entry)}\n`)
  } else {
    const rows = entries.map((entry) => [
      toText(entry['type']),
      toText(entry['match']),
      Object.keys(settingsIn(entry)).join(', '),
      entry['source'] === 'file' ? 'file' : toText(entry['changed_by']),
    ])
    await printTable(call, ['type', 'match', 'settings', 'by'], rows)
  }
  return entries.length === 0 ? EXIT.NOTHING : EXIT.OK
}

async function printTable({ io }: CommandCall, head: readonly string[], rows: readonly string[][]): Promise<void> {
  if (rows.length === 0) return
  const style = styles(io, io.stdout)
  const lines = table([head, ...rows.map((row) => row.map((cell) => shown(cell, io.stdout)))])
  for (const [i, row] of lines.entries()) await io.stdout.write(`${i === 0 ? style('bold', row) : row}\n`)
}

/** `signalbox channels set`: sets members of an entry; the others stay. */
export async function channelsSetCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const assignments = await Promise.all(line.words.slice(1).map((word) => assignmentOf(call, word)))
  const api = await connectManagement(call)
  const { settings, revision } = await storedEntry(api, call)
  for (const { path, value } of assignments) assign(settings, path, value)
  await write(api, call, settings, revision)
}

/** `signalbox channels unset`: removes an entry, or members of it. */
export async function channelsUnsetCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const members = line.words.slice(1)
  const api = await connectManagement(call)
  const { settings, revision } = await storedEntry(api, call)
  for (const member of members) {
    if (!Object.hasOwn(settings, member)) {
      throw line.invalid('MEMBER', member, `a member of the entry: ${Object.keys(settings).join(', ')}`)
    }
    delete settings[member]
  }
  if (members.length > 0 && Object.keys(settings).length > 0) return write(api, call, settings, revision)
  const dryRun = line.has('dry-run')
  const target = { type: line.option('type'), match: line.word(0) }
  // Without an entry there is no revision, and the answer says so.
  const expected = revision === 0 ? {} : { revision }
  const removed = await api.act('remove_channel_settings', { ...target, ...expected, dry_run: dryRun })
  await printResult(
    call,
    removed,
    `${dryRun ? 'would be removed' : 'removed'}: ${target.match}; ${matchedText(removed)}`,
  )
}

/** `signalbox pause`: pauses a queue, for a time or until it is resumed. */
export async function pauseCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const forMs = line.time('for')
  const api = await connectManagement(call)
  const paused = await api.act('pause_queue', {
    channel: line.word(0),
    reason: line.option('reason'),
    ...(forMs === undefined ? { until: null } : { seconds: Math.ceil(forMs / 1_000) }),
  })
  const until = forMs === undefined ? 'it is resumed' : toText(paused['paused_until'])
  await printResult(call, paused, `${line.word(0)} is paused until ${until}`)
}

/** `signalbox resume`: ends the pause of a queue. */
export async function resumeCommand(call: CommandCall): Promise<ExitCode> {
  const { line } = call
  const api = await connectManagement(call)
  const answer = await api.act('resume_queue', { channel: line.word(0) })
  const { resumed, paused_until: until } = answer
  const still = until === null || until === undefined ? '' : `; its settings pause it until ${toText(until)}`
  await printResult(call, answer, `${line.word(0)} ${resumed === true ? 'continues' : 'was not paused'}${still}`)
  return resumed === true ? EXIT.OK : EXIT.NOTHING
}

/** Returns the settings of the entry on the line, and its revision; 0 if there is none. */
async function storedEntry(
  api: ManagementClient,
  { line }: CommandCall,
): Promise<{ readonly settings: Record<string, unknown>; readonly revision: number }> {
  const [match, type] = [line.word(0), line.option('type')]
  const { items } = await api.get('/api/channel_settings', { type, channel: match, limit: 1000 })
  const entry = objectsOf(items).find((each) => each['match'] === match && each['source'] === 'api')
  const revision = entry?.['revision']
  return { settings: { ...settingsIn(entry ?? {}) }, revision: typeof revision === 'number' ? revision : 0 }
}

async function write(api: ManagementClient, call: CommandCall, settings: JsonObject, revision: number): Promise<void> {
  const { line } = call
  const dryRun = line.has('dry-run')
  const entry = { type: line.option('type'), match: line.word(0), ...settings }
  const written = await api.act('set_channel_settings', { ...entry, revision, dry_run: dryRun })
  const text = `${dryRun ? 'would be set' : 'set'}: ${entry.match} ${JSON.stringify(settings)}; ${matchedText(written)}`
  await printResult(call, written, text)
}

function matchedText({ matched }: JsonObject): string {
  const { total, channels } = isObject(matched) ? matched : {}
  const names = Array.isArray(channels) ? channels.slice(0, 5).map(toText) : []
  const more = Number(total) > names.length ? ', …' : ''
  return `channels that match: ${toText(total)}${names.length === 0 ? '' : ` (${names.join(', ')}${more})`}`
}

interface Assignment {
  readonly path: readonly string[]
  readonly value: unknown
}

/** Reads `member.part=value`: JSON, else text; `@FILE` is the JSON in a file. @throws CommandError CONFIG_INVALID */
async function assignmentOf({ line }: CommandCall, word: string): Promise<Assignment> {
  const at = word.indexOf('=')
  if (at < 1)
    throw line.invalid('SETTING', word, 'MEMBER=VALUE or MEMBER.PART=VALUE, such as retry.max_receive_count=5')
  const path = word.slice(0, at).split('.')
  const text = word.slice(at + 1)
  if (!text.startsWith('@')) return { path, value: parsed(text) ?? text }
  try {
    return { path, value: JSON.parse((await readSmallFile(text.slice(1))).text) }
  } catch (error) {
    throw new CommandError('CONFIG_INVALID', [`${line.command}: ${word}: ${messageOf(error)}; allowed is a JSON file`])
  }
}

/** Returns the value of JSON; undefined for other text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function assign(target: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    target[name] = value
    return
  }
  const inner = target[name]
  const part: Record<string, unknown> = isObject(inner) ? { ...inner } : {}
  target[name] = part
  assign(part, rest, value)
}
