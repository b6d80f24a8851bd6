import { useState } from 'preact/hooks'

import type { GetData, GetQuery } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { Badge, TYPE_NAMES, UserText } from '../../components/values.tsx'
import { ErrorOf, Facts, Panel } from '../../components/page.tsx'
import { Select } from '../../components/controls.tsx'
import { Field, TextField } from '../../components/fields.tsx'
import type { Place } from '../../router/location.ts'
import { setQuery } from '../../router/location.ts'

type Test = GetQuery<'/api/policy/test'>

type Decision = GetData<'/api/policy/test'>

const ACTIONS = [
  'send',
  'receive',
  'peek',
  'read',
  'subscribe',
  'respond',
  'list',
  'manage',
  'call',
  'register',
] as const satisfies readonly Test['action'][]

const PATTERNS: readonly (readonly [Test['pattern'], string])[] = [
  ['queues', TYPE_NAMES.queues],
  ['events', TYPE_NAMES.events],
  ['events_store', TYPE_NAMES.events_store],
  ['commands', TYPE_NAMES.commands],
  ['queries', TYPE_NAMES.queries],
  ['agents', 'Agent'],
]

/** Asks the policy whether a caller may act on a channel. The question is in the place. */
export function PolicyTester({ place: { query } }: { readonly place: Place }) {
  const [client, setClient] = useState(query['client'] ?? '')
  const [channel, setChannel] = useState(query['channel'] ?? '')
  const [action, setAction] = useState(ACTIONS.find((one) => one === query['action']) ?? 'send')
  const [pattern, setPattern] = useState(PATTERNS.find(([one]) => one === query['pattern'])?.[0] ?? 'queues')
  const asked = testOf(query)
  return (
    <Panel title="Policy tester" note="Asks the policy in force; nothing is sent">
      <form
        class="tester"
        onSubmit={(event) => {
          event.preventDefault()
          setQuery({ client, action, pattern, channel })
        }}
      >
        <TextField label="Caller (ClientID)" required value={client} onChange={setClient} />
        <Field label="Action">
          <Select value={action} options={ACTIONS.map((one) => [one, one])} onChange={setAction} />
        </Field>
        <Field label="On">
          <Select value={pattern} options={PATTERNS} onChange={setPattern} />
        </Field>
        <TextField
          label={pattern === 'agents' ? 'Agent id' : 'Channel'}
          required
          value={channel}
          onChange={setChannel}
        />
        <button type="submit" class="primary">
          Test
        </button>
      </form>
      <div role="status" aria-live="polite">
        {asked && <Answer key={JSON.stringify(asked)} test={asked} />}
      </div>
    </Panel>
  )
}

/** Returns the question of a place; undefined if it is not complete. */
function testOf(query: Readonly<Record<string, string>>): Test | undefined {
  const { client, channel } = query
  const action = ACTIONS.find((one) => one === query['action'])
  const pattern = PATTERNS.find(([one]) => one === query['pattern'])?.[0]
  if (client === undefined || channel === undefined || action === undefined || pattern === undefined) return undefined
  return { client, channel, action, pattern }
}

function Answer({ test }: { readonly test: Test }) {
  const { data, error } = useRoute('/api/policy/test', test)
  return (
    <>
      <ErrorOf error={error} />
      {data && (
        <div class="stack">
          <p>
            <Badge kind={data.allowed ? 'good' : 'bad'}>{data.allowed ? 'Allowed' : 'Denied'}</Badge>{' '}
            <UserText>{test.client}</UserText> {data.allowed ? 'may' : 'may not'} <code>{test.action}</code>{' '}
            {test.pattern === 'agents' ? 'the agent' : 'on the channel'} <UserText>{test.channel}</UserText>:{' '}
            {data.reason}.
          </p>
          {data.rule && <Rule rule={data.rule} />}
        </div>
      )}
    </>
  )
}

function Rule({ rule }: { readonly rule: NonNullable<Decision['rule']> }) {
  return (
    <Facts
      of={{
        Rule: `${rule.index}, which ${rule.effect === 'deny' ? 'denies' : 'allows'}`,
        Clients: listed(rule.clients),
        Actions: listed(rule.actions),
        Patterns: listed(rule.patterns),
        Channels: listed(rule.channels),
      }}
    />
  )
}

function listed(values: readonly string[]) {
  return <UserText max={2_000}>{values.join(', ')}</UserText>
}
