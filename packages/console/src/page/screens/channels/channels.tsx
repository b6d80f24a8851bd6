import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import type { GetData, GetQuery } from '../../api/client.ts'
import { get } from '../../api/client.ts'
import { toApiError, useData } from '../../api/use-data.ts'
import { ChannelLink, CHANNEL_TYPES, isChannelType, TYPE_NAMES } from '../../components/channel-link.tsx'
import type { ChannelType } from '../../components/channel-link.tsx'
import { Empty, ErrorOf, Loading, notify } from '../../components/feedback.tsx'
import { Search, Select } from '../../components/fields.tsx'
import { bytes, count, plural } from '../../components/format.ts'
import { Page } from '../../components/page.tsx'
import type { Column } from '../../components/table.tsx'
import { Table } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { go, setQuery } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import { Channel } from '../channel/channel.tsx'
import type { ScreenProps } from '../screens.ts'
import { CreateChannel } from './create-channel.tsx'

type Listed = GetData<'/api/channels'>['items'][number]

type Query = GetQuery<'/api/channels'>

type Sort = NonNullable<Query['sort']>

interface FixedColumn extends Column<Listed> {
  readonly sortable?: false
}

interface SortableColumn extends Column<Listed> {
  readonly id: Sort
  readonly sortable: true
}

const PAGE = 200

const TYPES: readonly (readonly [ChannelType | 'all', string])[] = [
  ['all', 'All types'],
  ...CHANNEL_TYPES.map((type) => [type, TYPE_NAMES[type]] as const),
]

const COLUMNS: readonly (FixedColumn | SortableColumn)[] = [
  { id: 'name', title: 'Channel', sortable: true, cell: ({ type, name }) => <ChannelLink type={type} name={name} /> },
  { id: 'type', title: 'Type', width: '7.5rem', cell: ({ type }) => TYPE_NAMES[type] },
  { ...numeric('depth', 'Depth', '6rem'), wideOnly: false },
  numeric('in_flight', 'In flight', '6.5rem'),
  numeric('delayed', 'Delayed', '6.5rem'),
  numeric('dead_lettered', 'Dead-lettered', '8rem'),
  numeric('messages_in', 'In', '7rem'),
  numeric('messages_out', 'Out', '7rem'),
  numeric('subscribers', 'Subscribers', '7.5rem'),
  { ...numeric('bytes', 'Size', '6.5rem'), cell: (row) => sized(row.bytes) },
  {
    id: 'last_activity',
    title: 'Last activity',
    numeric: true,
    sortable: true,
    wideOnly: true,
    width: '8.5rem',
    cell: ({ last_activity }) => <Ago value={last_activity} />,
  },
]

/** The orders of the list, one for each sortable column. */
const SORTS = COLUMNS.flatMap((column) => (column.sortable === true ? [column.id] : []))

function numeric(id: Exclude<Sort, 'name' | 'last_activity'>, title: string, width: string): SortableColumn {
  return {
    id,
    title,
    width,
    numeric: true,
    sortable: true,
    wideOnly: true,
    cell: (row) => {
      const value = row[id]
      return value === null ? <span class="muted">–</span> : count(value)
    },
  }
}

function sized(value: number | null) {
  return value === null ? <span class="muted">–</span> : bytes(value)
}

/** The list of all channels, or one of them: `#/channels/queues/orders`. */
export function Channels({ place }: ScreenProps) {
  const [, type, name] = place.path
  if (isChannelType(type) && name !== undefined)
    return <Channel key={`${type} ${name}`} type={type} name={name} place={place} />
  return <ChannelList place={place} />
}

function ChannelList({ place }: ScreenProps) {
  const { search = '', type, sort, order } = place.query
  const column = SORTS.find((one) => one === sort) ?? 'name'
  const descending = order === undefined ? column !== 'name' : order === 'desc'
  const [creating, setCreating] = useState(false)
  const mayWrite = useMay('ReadWrite')
  const query: Query = {
    search,
    sort: column,
    order: descending ? 'desc' : 'asc',
    limit: PAGE,
    ...(isChannelType(type) ? { type } : {}),
  }
  const { data, error, loading, refresh } = useData(
    `channels ${JSON.stringify(query)}`,
    (signal) => get('/api/channels', query, signal),
    5_000,
  )
  const rows = useFurtherPages(data, query)
  return (
    <Page
      title="Channels"
      note={data && plural(data.total, 'channel')}
      actions={
        <>
          <Search label="Find a channel" value={search} onChange={(value) => setQuery({ search: value })} />
          <Select
            label="Type"
            value={isChannelType(type) ? type : 'all'}
            options={TYPES}
            onChange={(value) => setQuery({ type: value === 'all' ? undefined : value })}
          />
          {mayWrite && (
            <button type="button" class="primary" onClick={() => setCreating(true)}>
              Create channel
            </button>
          )}
        </>
      }
    >
      <ErrorOf error={error} />
      {loading && <Loading />}
      {data?.complete === false && <Empty>The server is still counting. The order is not final yet.</Empty>}
      {data?.total === 0 && (
        <Empty>
          {search === '' && type === undefined
            ? 'There is no channel. The first message to a channel creates it.'
            : 'No channel matches the filters.'}
        </Empty>
      )}
      {rows.items.length > 0 && (
        <Table
          label="Channels"
          columns={COLUMNS}
          rows={rows.items}
          keyOf={({ type, name }) => `${type} ${name}`}
          sorting={{ column, descending }}
          onSort={(sorting) => setQuery({ sort: sorting.column, order: sorting.descending ? 'desc' : 'asc' })}
          onOpen={({ type, name }) => go(['channels', type, name])}
          onEnd={rows.more}
        />
      )}
      {creating && (
        <CreateChannel
          onClose={() => setCreating(false)}
          onCreated={(made) => {
            notify(made)
            refresh()
          }}
        />
      )}
    </Page>
  )
}

/** Adds further pages to the first one when the reader comes near their end. The first page stays current. */
function useFurtherPages(first: GetData<'/api/channels'> | undefined, query: Query) {
  const key = JSON.stringify(query)
  const [further, setFurther] = useState<{ key: string; items: readonly Listed[]; cursor: string | null }>()
  const reading = useRef(false)
  useEffect(() => setFurther(undefined), [key])
  const current = further?.key === key ? further : undefined
  const cursor = current === undefined ? first?.next_cursor : current.cursor
  const more = useCallback(() => {
    if (cursor === null || cursor === undefined || reading.current) return
    reading.current = true
    get('/api/channels', { ...query, cursor })
      .then((page) =>
        setFurther((old) => ({
          key,
          items: [...(old?.key === key ? old.items : []), ...page.items],
          cursor: page.next_cursor,
        })),
      )
      .catch((cause: unknown) => notify(toApiError(cause).message))
      .finally(() => (reading.current = false))
  }, [cursor, key])
  const items = first?.items ?? []
  if (current === undefined) return { items, more }
  const shown = new Set(items.map(({ type, name }) => `${type} ${name}`))
  return { items: [...items, ...current.items.filter(({ type, name }) => !shown.has(`${type} ${name}`))], more }
}
