import type { SettingsEntry } from '@signalbox/broker-core'
import { CHANNEL_TYPES, isPattern } from '@signalbox/broker-core'
import { nameMatcher } from '@signalbox/broker-core/internal'
import { hasRole } from '@signalbox/http-kit'
import {
  channelSettingMembers,
  channelSettingTarget,
  isoTime,
  problemsText,
  readChannelSettings,
} from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { invalidParameters, ManagementError, roleMissing } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { ActionCall, ManagementRouteCall, Operation } from '../operation.ts'
import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { ChannelSettingsPort, StoredChannelSettings } from '../ports.ts'
import { observerHandle } from '../statistics/statistics-operations.ts'

const source = Type.Enum(['api', 'file'], { description: 'file: the entry is in CHANNEL_SETTINGS_FILE.' })

const entryData = Type.Object({
  ...channelSettingTarget,
  ...channelSettingMembers,
  source,
  revision: Type.Optional(
    Type.Integer({ minimum: 1, description: 'For conditional changes. Absent for an entry of the file.' }),
  ),
  changed_by: Type.Optional(Type.String({ description: 'The ClientID of the operator who wrote the entry.' })),
  changed_at: Type.Optional(Type.String({ description: 'ISO 8601.' })),
})

function shownStored({ given, revision, changedBy, changedAt }: StoredChannelSettings) {
  return { ...given, source: 'api' as const, revision, changed_by: changedBy, changed_at: isoTime(changedAt) }
}

const origin = Type.Optional(
  Type.Object({ match: Type.String({ description: 'The entry that the member comes from.' }), source }),
)

const unreadable = Type.Optional(
  Type.Literal(true, {
    description: 'Present if an entry of a newer version has a schema or groups: this node refuses sends.',
  }),
)

const settingsRoute = defineManagementRoute({
  name: '/api/channel_settings',
  summary: 'The entries of the channel settings. With type and channel, those that match, and the settings in force.',
  input: Type.Object(
    {
      type: Type.Optional(channelSettingTarget.type),
      channel: Type.Optional(
        Type.String({
          description: 'Only entries that match this name. Requires type.',
          minLength: 1,
          maxLength: 512,
        }),
      ),
      ...pagingParameters,
    },
    STRICT,
  ),
  output: Type.Object({
    ...pageSchema(entryData).properties,
    effective: Type.Optional(
      Type.Object(
        { ...channelSettingMembers, unreadable },
        { description: 'The settings in force. Present with type and channel.' },
      ),
    ),
    pause: Type.Optional(
      Type.Object(
        { paused_until: Type.String(), reason: Type.String(), changed_by: Type.String() },
        {
          description:
            'The pause of the queue by pause_queue or by a receiver. effective.consumers.paused_until is the later one of it and of the entries.',
        },
      ),
    ),
    origins: Type.Optional(
      Type.Object(
        {
          description: origin,
          retry: origin,
          consumers: origin,
          groups: origin,
          retention: origin,
          deduplication: origin,
          schema: origin,
        },
        { description: 'The entry that each member comes from, also one that is null.' },
      ),
    ),
  }),
  run({ type, channel, ...paging }, { services }) {
    if (channel !== undefined && type === undefined) {
      throw invalidParameters([
        { parameter: 'type', allowed: `given with channel: one of ${CHANNEL_TYPES.join(', ')}` },
      ])
    }
    const port = services.channelSettings
    const shown = [...(port?.entries() ?? []).map(shownStored), ...(port?.fromFile ?? [])]
    const entries = shown.filter(
      (entry) =>
        (type === undefined || entry.type === type) &&
        (channel === undefined || entry.match === channel || nameMatcher([entry.match])(channel)),
    )
    const page = pageOf(entries, ({ type: of, match, source: from }) => `${of} ${match} ${from}`, paging)
    if (type === undefined || channel === undefined) return page
    const { pauses, settings } = services.broker
    const effective = settings.of(type, channel)
    const answer = { ...page, effective, origins: settings.origins(type, channel) }
    const pause = type === 'queues' ? pauses.of(channel) : undefined
    if (pause === undefined) return answer
    const { until, reason, changedBy } = pause
    const end = isoTime(services.broker.pausedUntil(channel) ?? until)
    return {
      ...answer,
      effective: { ...effective, consumers: { ...effective.consumers, paused_until: end } },
      pause: { paused_until: isoTime(until), reason, changed_by: changedBy },
    }
  },
})

/** The most channel names in an answer. */
const MAX_NAMES = 100

const matched = Type.Object(
  {
    total: Type.Integer({ minimum: 0 }),
    channels: Type.Array(Type.String(), { description: `The first ${MAX_NAMES} by name.` }),
  },
  { description: 'The channels that exist and match. Other entries may be more specific.' },
)

async function matchedChannels({ type, match }: Pick<SettingsEntry, 'type' | 'match'>, call: ManagementRouteCall) {
  const names = (await observerHandle(call).channels.names({ type, pattern: match })).map(({ name }) => name)
  // Without a wildcard the pattern is a prefix.
  const found = isPattern({ match }) ? names : names.filter((name) => name === match)
  return { total: found.length, channels: found.slice(0, MAX_NAMES) }
}

/** Patterns can change any channel, so they need the role of an Admin. @throws ManagementError ROLE_MISSING */
function assertMayChange({ match }: Pick<SettingsEntry, 'match'>, { operator }: ActionCall): void {
  if (isPattern({ match }) && !hasRole(operator, 'Admin')) throw roleMissing('Admin')
}

/** @throws ManagementError SETTING_UNSUPPORTED if the engine cannot apply an entry now */
async function assertSupported(entry: SettingsEntry, { services }: ActionCall): Promise<void> {
  const reason = await services.broker.settingProblem(entry)
  if (reason === undefined) return
  throw new ManagementError('SETTING_UNSUPPORTED', `unsupported settings: ${reason}`, { reason })
}

function portOf({ services }: ActionCall): ChannelSettingsPort {
  const { channelSettings } = services
  if (channelSettings === undefined) throw new ManagementError('NOT_READY', 'this host has no channel settings')
  return channelSettings
}

const revision = Type.Optional(
  Type.Integer({
    description: 'The revision that the entry must have; 0 if there must be none. A changed entry is a CONFLICT.',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
  }),
)

const dryRun = Type.Optional(
  Type.Boolean({ description: 'True checks the entry and changes nothing.', default: false }),
)

const isDryRun = Type.Optional(Type.Literal(true, { description: 'Present after a dry run: nothing was changed.' }))

const setSettings = defineAction({
  name: 'set_channel_settings',
  summary: 'Writes an entry of the channel settings; it replaces the entry for the same type and match.',
  input: Type.Object({ ...channelSettingTarget, ...channelSettingMembers, revision, dry_run: dryRun }, STRICT),
  output: Type.Object({ ...entryData.properties, matched, dry_run: isDryRun }),
  target: ({ type, match }) => ({ type, channel: match }),
  async run({ revision: expected, dry_run: onlyCheck = false, ...given }, call) {
    const read = readChannelSettings(given, 'api')
    if ('problems' in read) {
      const { problems } = read
      throw new ManagementError('SETTINGS_INVALID', `invalid settings: ${problemsText(problems)}`, { problems })
    }
    assertMayChange(given, call)
    const port = portOf(call)
    await assertSupported(read.entry, call)
    const found = await matchedChannels(given, call)
    if (onlyCheck) return { ...given, source: 'api' as const, matched: found, dry_run: true as const }
    return { ...shownStored(await port.set(given, call.operator.clientId, expected)), matched: found }
  },
  detail: ({ match, revision: written, dry_run: onlyChecked }) =>
    onlyChecked ? `dry run for ${match}` : `revision ${written}`,
})

const removeSettings = defineAction({
  name: 'remove_channel_settings',
  summary: 'Removes an entry of the channel settings. Less specific entries apply again.',
  input: Type.Object({ ...channelSettingTarget, revision, dry_run: dryRun }, STRICT),
  output: Type.Object({ ...channelSettingTarget, matched, dry_run: isDryRun }),
  target: ({ type, match }) => ({ type, channel: match }),
  async run({ type, match, revision: expected, dry_run: onlyCheck = false }, call) {
    assertMayChange({ match }, call)
    const port = portOf(call)
    // Without members, as if it were removed.
    await assertSupported({ type, match, source: 'api' }, call)
    const found = await matchedChannels({ type, match }, call)
    const exists = onlyCheck
      ? port.entries().some(({ given }) => given.type === type && given.match === match)
      : await port.remove({ type, match }, expected)
    if (!exists) {
      const inFile = port.fromFile.some((entry) => entry.type === type && entry.match === match)
      throw new ManagementError(
        'SETTINGS_NOT_FOUND',
        `no entry for ${type} ${JSON.stringify(match)} was written${inFile ? '; the one of CHANNEL_SETTINGS_FILE is changed there' : ''}; /api/channel_settings lists the entries`,
        { type, match },
      )
    }
    return { type, match, matched: found, ...(onlyCheck ? { dry_run: true as const } : {}) }
  },
})

export const settingsOperations: readonly Operation[] = [settingsRoute, setSettings, removeSettings]
