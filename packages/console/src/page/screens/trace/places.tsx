import type { GetData } from '../../api/client.ts'
import { ChannelLink, count, Time, UserCode, UserText } from '../../components/values.tsx'
import { Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { href } from '../../router/location.ts'

type Place = GetData<'/api/trace'>['places'][number]

/** The channels that store the message now. */
export function Places({ places }: { readonly places: readonly Place[] }) {
  return (
    <Panel title="Stored now">
      <Table
        label="Channels that store the message"
        rows={places}
        keyOf={({ type, channel, message }) => `${type} ${channel} ${message.sequence}`}
        columns={[
          {
            title: 'Channel',
            cell: ({ type, channel, dead_letter_of: source }) => (
              <>
                <ChannelLink type={type} name={channel} />
                {source !== undefined && (
                  <span class="muted">
                    {' '}
                    dead letter of <UserText>{source}</UserText>
                  </span>
                )}
              </>
            ),
          },
          {
            title: 'Sequence',
            width: '7rem',
            numeric: true,
            cell: ({ type, channel, message: { sequence } }) => (
              <a href={href(['channels', type, channel], { message: String(sequence) })}>{count(sequence)}</a>
            ),
          },
          {
            title: 'Receives',
            width: '6rem',
            numeric: true,
            wideOnly: true,
            cell: ({ message: { receive_count: receives } }) => (receives === undefined ? '–' : count(receives)),
          },
          {
            title: 'Sender',
            width: '11rem',
            wideOnly: true,
            cell: ({ message }) => <UserText>{message.client_id}</UserText>,
          },
          {
            title: 'Accepted',
            width: '9.5rem',
            wideOnly: true,
            cell: ({ message }) => <Time value={message.timestamp} />,
          },
          {
            title: 'Body',
            wideOnly: true,
            cell: ({ message: { body, body_encoding: encoding } }) =>
              encoding === undefined ? <UserCode>{body}</UserCode> : <span class="muted">bytes</span>,
          },
        ]}
      />
    </Panel>
  )
}
