import { useState } from 'preact/hooks'

import { get } from '../../api/client.ts'
import { usePages } from '../../api/use-pages.ts'
import { Search } from '../../components/controls.tsx'
import { Empty, Page, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { Ago, ChannelLink, hasText, plural, Time, UserText } from '../../components/values.tsx'
import { go, href } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import type { ScreenProps } from '../screens.ts'
import type { Schedule } from './schedule-dialog.tsx'
import { ScheduleDialog, ScheduleState, timesText } from './schedule-dialog.tsx'
import { ScheduleForm } from './schedule-form.tsx'

const NONE: readonly Schedule[] = []

/** The schedules; the place `schedules/ID` is one of them. */
export function Schedules({ place }: ScreenProps) {
  const [, id] = place.path
  const { search = '' } = place.query
  const [adding, setAdding] = useState(false)
  const mayWrite = useMay('ReadWrite')
  const { data, error, loading, refresh } = usePages(
    'schedules',
    (cursor, signal) => get('/api/schedules', { limit: 1_000, ...cursor }, signal),
    3_000,
  )
  const items = data ?? NONE
  const shown = items.filter((one) => hasText(search, one.id, one.target.channel))
  return (
    <Page
      title="Schedules"
      note={data && items.length > 0 ? plural(items.length, 'schedule') : undefined}
      actions={
        <>
          <Search label="Find a schedule" />
          {mayWrite && (
            <button type="button" class="primary" onClick={() => setAdding(true)}>
              Add schedule
            </button>
          )}
        </>
      }
    >
      <Reading of={{ error, loading }} />
      {data?.length === 0 && (
        <Empty>There is no schedule. A schedule sends a message to a channel at the times that you set.</Empty>
      )}
      {items.length > 0 && (
        <Table
          label="Schedules"
          empty="No schedule has this text in its id or its channel."
          rows={shown}
          keyOf={(one) => one.id}
          onOpen={(one) => go(['schedules', one.id], place.query)}
          isSelected={(one) => one.id === id}
          columns={[
            {
              title: 'Schedule',
              cell: (one) => (
                <a href={href(['schedules', one.id], place.query)}>
                  <UserText>{one.id}</UserText>
                </a>
              ),
            },
            { title: 'Times', width: '15rem', wideOnly: true, cell: (one) => <UserText>{timesText(one)}</UserText> },
            {
              title: 'Channel',
              wideOnly: true,
              cell: ({ target: { type, channel } }) => <ChannelLink type={type} name={channel} />,
            },
            { title: 'Next', width: '13rem', cell: ({ next_times: [next] }) => (next ? <Time value={next} /> : '–') },
            { title: 'Last sent', width: '8rem', wideOnly: true, cell: (one) => <Ago value={one.last_sent_at} /> },
            { title: 'Missed', width: '6rem', wideOnly: true, count: 'missed' },
            { title: 'State', width: '7rem', cell: (one) => <ScheduleState schedule={one} /> },
          ]}
        />
      )}
      {id !== undefined && data && (
        <ScheduleDialog
          schedule={items.find((one) => one.id === id)}
          onClose={() => go(['schedules'], place.query)}
          onChanged={refresh}
        />
      )}
      {adding && <ScheduleForm onClose={() => setAdding(false)} onAdded={refresh} />}
    </Page>
  )
}
