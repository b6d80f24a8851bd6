import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import type { GetData, PostBody } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { TextArea } from '../../components/fields.tsx'
import { attempt, Empty, ErrorOf, notify, Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { Time, UserCode, UserText } from '../../components/values.tsx'
import type { ChannelType } from '../../components/values.tsx'
import { useMay } from '../../session/operator.ts'

interface ChannelSettingsProps {
  readonly type: ChannelType
  readonly channel: string
}

type Settings = GetData<'/api/channel_settings'>

/** The settings of a channel, with the entry that each comes from. */
export function ChannelSettings({ type, channel }: ChannelSettingsProps) {
  const mayWrite = useMay('ReadWrite')
  const [editing, setEditing] = useState(false)
  const { data, error, refresh } = useRoute('/api/channel_settings', { type, channel, limit: 1_000 }, 10_000)
  const rows = data === undefined ? [] : rowsOf(data)
  return (
    <Panel
      title="Settings"
      actions={
        mayWrite &&
        data && (
          <>
            {type === 'queues' && <PauseButton channel={channel} settings={data} onDone={refresh} />}
            <button type="button" onClick={() => setEditing(true)}>
              Edit
            </button>
          </>
        )
      }
    >
      <ErrorOf error={error} />
      {data && <PauseBanner settings={data} />}
      {data && rows.length === 0 && (
        <Empty>No entry is for this channel: the values of each message and of the server apply.</Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Settings"
          rows={rows}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Setting', cell: ({ name }) => <UserCode>{name}</UserCode> },
            { title: 'Value', cell: ({ value }) => <UserText max={1_000}>{value}</UserText> },
            { title: 'From', width: '9rem', cell: ({ from }) => <UserCode>{from}</UserCode> },
          ]}
        />
      )}
      {editing && data && (
        <EditSettings
          type={type}
          channel={channel}
          settings={data}
          onClose={() => setEditing(false)}
          onDone={() => {
            setEditing(false)
            refresh()
          }}
        />
      )}
    </Panel>
  )
}

/** Says that a queue delivers nothing, until when and why. */
function PauseBanner({ settings: { effective, pause } }: { readonly settings: Settings }) {
  const until = effective?.consumers?.paused_until
  if (until === null || until === undefined || Date.parse(until) <= Date.now()) return null
  return (
    <p class="banner" role="status">
      This queue is paused
      {until.startsWith('9999') ? (
        ' until it is resumed'
      ) : (
        <>
          {' '}
          until <Time value={until} />
        </>
      )}
      . It accepts messages, and delivers none.
      {pause !== undefined && pause.reason !== '' && (
        <>
          {' '}
          Reason: <UserText>{pause.reason}</UserText>
        </>
      )}
    </p>
  )
}

interface PauseButtonProps {
  readonly channel: string
  readonly settings: Settings
  readonly onDone: () => void
}

/** Pauses a queue until it is resumed, or resumes it. */
function PauseButton({ channel, settings: { pause }, onDone }: PauseButtonProps) {
  const run = async (): Promise<void> => {
    if (pause === undefined) await act('pause_queue', { channel, until: null })
    else await act('resume_queue', { channel })
    notify(pause === undefined ? `${channel} is paused until it is resumed.` : `${channel} continues.`)
    onDone()
  }
  return (
    <button type="button" onClick={() => attempt(run)}>
      {pause === undefined ? 'Pause' : 'Resume'}
    </button>
  )
}

interface Row {
  readonly name: string
  readonly value: string
  readonly from: string
}

/** Returns a row for each part of the settings in force. */
function rowsOf({ effective = {}, origins = {} }: Settings): readonly Row[] {
  const from = new Map(
    Object.entries(origins).map(([member, { match, source }]) => [member, originText(match, source)]),
  )
  return Object.entries(effective).flatMap(([member, value]) => {
    const row = (name: string, part: unknown): Row => ({ name, value: valueText(part), from: from.get(member) ?? '' })
    if (typeof value !== 'object' || value === null) return [row(member, value)]
    return Object.entries(value).map(([part, given]) => row(`${member}.${part}`, given))
  })
}

function originText(match: string, source: string): string {
  return source === 'file' ? `${match} (file)` : match
}

function valueText(value: unknown): string {
  if (value === '' || value === null) return '–'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

interface EditSettingsProps extends ChannelSettingsProps {
  readonly settings: Settings
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Edits the entry with the channel's name. Other entries, for patterns, stay. */
function EditSettings({ type, channel, settings: { items }, onClose, onDone }: EditSettingsProps) {
  const entry = items.find(({ match, source }) => match === channel && source === 'api')
  const [text, setText] = useState(() => JSON.stringify(settingsIn(entry), undefined, 2))
  const revision = entry?.revision ?? 0
  const save = async (): Promise<void> => {
    if (/^\s*(?:\{\s*\})?\s*$/.test(text)) {
      if (entry !== undefined) await act('remove_channel_settings', { type, match: channel, revision })
      notify(`${channel} has no settings by name.`)
    } else {
      const body: PostBody<'/api/actions/set_channel_settings'> = {
        ...JSON.parse(text),
        type,
        match: channel,
        revision,
      }
      await act('set_channel_settings', body)
      notify(`Settings of ${channel} saved.`)
    }
    onDone()
  }
  return (
    <Dialog title="Edit settings" wide onClose={onClose}>
      <ActionForm action="Save" onLeave={onClose} run={save}>
        <TextArea
          label="The settings of this channel, as JSON"
          hint={
            <>
              Members: description, retry, consumers, groups, retention, deduplication, schema. A member that is left
              out comes from the entries for patterns; null means none. Empty removes the entry.
            </>
          }
          rows={14}
          value={text}
          onChange={setText}
        />
      </ActionForm>
    </Dialog>
  )
}

/** Returns the members of an entry that are settings; an example if there is no entry. */
function settingsIn(entry: Settings['items'][number] | undefined): object {
  if (entry === undefined) return {}
  const { type: _type, match: _match, source: _source, revision: _revision, ...rest } = entry
  const { changed_by: _by, changed_at: _at, ...settings } = rest
  return settings
}
