import { useMemo, useState } from 'preact/hooks'

import { act, get } from '../../api/client.ts'
import type { GetData, GetQuery } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { last, perSecond, useHistory } from '../../api/use-history.ts'
import { useFurtherPages } from '../../api/use-pages.ts'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Search, Select } from '../../components/controls.tsx'
import { Field, TextField } from '../../components/fields.tsx'
import { Behind, Empty, notify, Page, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import type { Column } from '../../components/table.tsx'
import {
  bytes,
  CHANNEL_TYPES,
  ChannelLink,
  count,
  isChannelType,
  plural,
  rate,
  TYPE_FILTERS,
  TYPE_NAMES,
} from '../../components/values.tsx'
import type { ChannelType } from '../../components/values.tsx'
import { go, setQuery } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import { Channel } from '../channel/channel.tsx'
import type { ScreenProps } from '../screens.ts'

type Listed = GetData<'/api/channels'>['items'][number]

type Query = GetQuery<'/api/channels'>

type Sort = NonNullable<Query['sort']>

type FixedColumn = Column<Listed> & { readonly sortable?: false }

type SortableColumn = Column<Listed> & { readonly id: Sort; readonly sortable: true }

type SortableOrFixed = FixedColumn | SortableColumn

const PAGE = 200

const FIRST_COLUMNS: readonly SortableOrFixed[] = [
  { id: 'name', title: 'Channel', sortable: true, cell: ({ type, name }) => <ChannelLink type={type} name={name} /> },
  { id: 'type', title: 'Type', width: '7rem', cell: ({ type }) => TYPE_NAMES[type] },
  { ...numeric('depth', 'Depth', '5rem'), wideOnly: false },
  numeric('in_flight', 'In flight', '5.5rem'),
  numeric('delayed', 'Delayed', '5.5rem'),
  numeric('dead_lettered', 'Dead-lettered', '7.5rem'),
  numeric('messages_in', 'In', '5.5rem'),
]

const LAST_COLUMNS: readonly SortableOrFixed[] = [
  numeric('subscribers', 'Subscribers', '7rem'),
  { ...numeric('bytes', 'Size', '5.5rem'), cell: (row) => sized(row.bytes) },
  {
    id: 'last_activity',
    title: 'Last activity',
    numeric: true,
    sortable: true,
    wideOnly: true,
    width: '7.5rem',
    ago: 'last_activity',
  },
]

const OUT = numeric('messages_out', 'Out', '5.5rem')

/** Returns the columns, with the present rates of the channels that the node follows. */
function columnsWith(rates: Rates): readonly SortableOrFixed[] {
  return [
    ...FIRST_COLUMNS,
    rateColumn('in', 'In rate', rates),
    OUT,
    rateColumn('out', 'Out rate', rates),
    ...LAST_COLUMNS,
  ]
}

function rateColumn(id: keyof ChannelRates, title: string, rates: Rates): FixedColumn {
  return {
    id: `${id}_rate`,
    title,
    width: '5.5rem',
    numeric: true,
    wideOnly: true,
    cell: (row) => {
      const known = rates.get(idOf(row))
      return known === undefined ? <span class="muted">–</span> : rate(known[id])
    },
  }
}

/** The orders of the list, one for each sortable column. */
const SORTS = [...FIRST_COLUMNS, OUT, ...LAST_COLUMNS].flatMap((column) =>
  column.sortable === true ? [column.id] : [],
)

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
    type: isChannelType(type) ? type : undefined,
  }
  const { data, error, loading, refresh } = useRoute('/api/channels', query, 5_000)
  const rows = useFurtherPages({
    key: JSON.stringify(query),
    first: data,
    load: (cursor: string, signal) => get('/api/channels', { ...query, cursor }, signal),
    idOf,
    onError: (problem) => notify(problem.message),
  })
  const rates = useRates()
  const columns = useMemo(() => columnsWith(rates), [rates])
  return (
    <Page
      title="Channels"
      note={data && plural(data.total, 'channel')}
      actions={
        <>
          <Search label="Find a channel" />
          <Select
            label="Type"
            value={isChannelType(type) ? type : 'all'}
            options={TYPE_FILTERS}
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
      <Reading of={{ error, loading }} />
      <Behind of={rows} />
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
          columns={columns}
          rows={rows.items}
          keyOf={idOf}
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

/** Identifies a channel in lists, such as `queues orders`. */
function idOf({ type, name }: Pick<Listed, 'type' | 'name'>): string {
  return `${type} ${name}`
}

interface CreateChannelProps {
  readonly onClose: () => void
  /** Gets a sentence for the operator. */
  readonly onCreated: (text: string) => void
}

function CreateChannel({ onClose, onCreated }: CreateChannelProps) {
  const [type, setType] = useState<ChannelType>('queues')
  const [channel, setChannel] = useState('')
  const create = async (): Promise<void> => {
    const { created } = await act('create_channel', { channel, type })
    onCreated(created ? `${TYPE_NAMES[type]} ${channel} created.` : `${TYPE_NAMES[type]} ${channel} existed already.`)
    onClose()
  }
  return (
    <Dialog title="Create channel" onClose={onClose}>
      <ActionForm action="Create" onLeave={onClose} run={create}>
        <Field label="Type">
          <Select
            label="Type"
            value={type}
            options={CHANNEL_TYPES.map((one) => [one, TYPE_NAMES[one]])}
            onChange={setType}
          />
        </Field>
        <TextField
          label="Name"
          hint="Parts are separated by dots, such as orders.eu."
          required
          value={channel}
          onChange={setChannel}
        />
      </ActionForm>
    </Dialog>
  )
}

/** Messages in a second, in the last step of the history. */
interface ChannelRates {
  readonly in: number
  readonly out: number
}

/** By type and name, as in `queues orders`. */
type Rates = ReadonlyMap<string, ChannelRates>

/** The most channels whose history a node keeps: the most active ones. */
const FOLLOWED = 50

/** Returns the present rates of the channels that the node follows. */
function useRates(): Rates {
  const { data } = useHistory('minute', { channels: FOLLOWED, agents: 0 })
  return useMemo(
    () =>
      new Map(
        data?.channels.map((channel) => [
          idOf(channel),
          { in: last(perSecond(channel.messages_in, data)), out: last(perSecond(channel.messages_out, data)) },
        ]),
      ),
    [data],
  )
}
