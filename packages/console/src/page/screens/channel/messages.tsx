import type { GetData, GetQuery } from '../../api/client.ts'
import { get } from '../../api/client.ts'
import type { PageOf } from '../../api/further-pages.ts'
import { useRoute } from '../../api/use-data.ts'
import { useFurtherPages } from '../../api/use-pages.ts'
import { BodyPreview } from '../../components/body-view.tsx'
import { Behind, notify, Panel, Reading } from '../../components/page.tsx'
import { Search, Select } from '../../components/controls.tsx'
import { count, UserText } from '../../components/values.tsx'
import type { Column } from '../../components/table.tsx'
import { Table } from '../../components/table.tsx'
import type { Place } from '../../router/location.ts'
import { setQuery } from '../../router/location.ts'
import { MessageDialog } from './message-dialog.tsx'
import type { ShownMessage } from './message-dialog.tsx'

type Query = GetQuery<'/api/messages'>

interface MessagesProps {
  readonly type: 'queues' | 'events_store'
  readonly channel: string
  readonly place: Place
  /** Changes after an action: the messages are read again. */
  readonly changes: number
  readonly onChanged: () => void
}

const PAGE = 100

/** The messages that a queue or an events store holds. */
export function Messages({ type, channel, place, changes, onChanged }: MessagesProps) {
  const { search = '', from = '', order, message } = place.query
  const newest = type === 'events_store' && order !== 'oldest'
  const query: Query = {
    type,
    channel,
    limit: PAGE,
    max_body_size: 256,
    order: newest ? 'newest' : undefined,
    search,
    ...startOf(from, newest),
  }
  const key = JSON.stringify(query)
  const first = useRoute('/api/messages', query, 5_000, changes)
  const { from_time: _, ...rest } = query
  const list = useFurtherPages({
    key,
    first: first.data && pageOf(first.data),
    load: async (next, signal) => pageOf(await get('/api/messages', { ...rest, from_sequence: next }, signal)),
    idOf: (one) => one.sequence,
    onError: (problem) => notify(problem.message),
  })
  const sequence = Number(message)
  return (
    <Panel
      title="Messages"
      note={first.data && noteOf(list.items.length, list.next)}
      actions={
        <>
          <Search label="Search in messages" />
          {type === 'events_store' && (
            <Select
              label="Order"
              value={newest ? 'newest' : 'oldest'}
              options={[
                ['newest', 'Newest first'],
                ['oldest', 'Oldest first'],
              ]}
              onChange={(value) => setQuery({ order: value, from: undefined })}
            />
          )}
          <FromField key={from} value={from} times={type === 'events_store' && !newest} />
        </>
      }
    >
      <Reading of={first} />
      <Behind of={list} />
      {first.data && (
        <Table
          label="Messages"
          empty={
            search !== ''
              ? `No message contains this text among ${count(first.data.examined)} that were searched.`
              : type === 'queues'
                ? 'No message waits here. Leased and delayed messages are not shown.'
                : 'This events store is empty.'
          }
          columns={type === 'queues' ? QUEUE_COLUMNS : STORE_COLUMNS}
          rows={list.items}
          keyOf={({ sequence }) => String(sequence)}
          onOpen={(row) => setQuery({ message: String(row.sequence) })}
          isSelected={(row) => row.sequence === sequence}
          onEnd={search === '' ? list.more : undefined}
        />
      )}
      {list.next !== null && search !== '' && (
        <button type="button" onClick={list.more}>
          Search further
        </button>
      )}
      {Number.isSafeInteger(sequence) && sequence > 0 && (
        <MessageDialog
          key={sequence}
          type={type}
          channel={channel}
          sequence={sequence}
          onClose={() => setQuery({ message: undefined })}
          onSent={() => {
            first.refresh()
            onChanged()
          }}
        />
      )}
    </Panel>
  )
}

const COLUMNS: readonly Column<ShownMessage>[] = [
  { title: 'Sequence', width: '6rem', count: 'sequence' },
  { title: 'Age', width: '8rem', ago: 'timestamp' },
  { title: 'Sender', width: '10rem', wideOnly: true, text: 'client_id' },
  { title: 'Body', cell: preview },
  { title: 'Tags', width: '4.5rem', wideOnly: true, count: 'tag_count' },
  { title: 'Size', width: '6rem', wideOnly: true, bytes: 'body_size' },
]

const QUEUE_COLUMNS: readonly Column<ShownMessage>[] = [
  ...COLUMNS,
  {
    title: 'Receives',
    numeric: true,
    width: '6rem',
    wideOnly: true,
    cell: ({ receive_count }) => count(receive_count ?? 0),
  },
]

const STORE_COLUMNS: readonly Column<ShownMessage>[] = [
  ...COLUMNS,
  {
    title: 'Key',
    width: '8rem',
    wideOnly: true,
    cell: ({ key, tombstone }) => (
      <>
        {key !== undefined && <UserText>{key}</UserText>}
        {tombstone === true && <span class="muted"> deleted</span>}
      </>
    ),
  },
]

function preview(message: ShownMessage) {
  return message.body_size === 0 ? <span class="muted">(empty)</span> : <BodyPreview of={message} />
}

function noteOf(shown: number, next: number | null): string {
  return next === null ? count(shown) : `the first ${count(shown)}`
}

/** Reads the filter `from`: a sequence, or a time. */
function startOf(from: string, newest: boolean): Partial<Query> {
  if (/^\d+$/.test(from)) return { from_sequence: Number(from) }
  if (from === '' || newest) return {}
  const time = new Date(from)
  return Number.isNaN(time.getTime()) ? {} : { from_time: time.toISOString() }
}

interface FromFieldProps {
  readonly value: string
  /** `true` if a time is allowed too. */
  readonly times: boolean
}

function FromField({ value, times }: FromFieldProps) {
  const label = times ? 'From sequence or time' : 'From sequence'
  return (
    <input
      class="from"
      aria-label={label}
      placeholder={label}
      title={times ? 'A sequence, or a time such as 2026-05-01 12:00' : 'A sequence'}
      value={value}
      onChange={(event) => setQuery({ from: event.currentTarget.value.trim() })}
    />
  )
}

function pageOf({ items, next_sequence: next_cursor }: GetData<'/api/messages'>): PageOf<ShownMessage, number> {
  return { items, next_cursor }
}
