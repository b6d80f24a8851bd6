import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { Ago, Badge, plural, Time, UserText } from '../../components/values.tsx'
import { Facts, Page, Panel, Problem, Reading } from '../../components/page.tsx'
import { href } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { PolicyTester } from './policy-tester.tsx'

type SecurityData = GetData<'/api/security'>

/** The authentication and the policy in force, and a tester of the policy. */
export function Security({ place }: ScreenProps) {
  const { data, error, loading } = useRoute('/api/security', {}, 10_000)
  return (
    <Page
      title="Security"
      note="Of this node"
      actions={<a href={href(['audit'], { outcome: 'denied' })}>Denials in the audit log</a>}
    >
      <Reading of={{ error, loading }} />
      {data && (
        <div class="grid">
          <Panel title="Listeners">
            <Listeners data={data} />
          </Panel>
          <Panel title="Keys that verify tokens">
            <Keys keys={data.keys} />
          </Panel>
          <Panel title="Policy">
            <PolicyFacts policy={data.policy} />
          </Panel>
        </div>
      )}
      {data && <PolicyTester place={place} />}
    </Page>
  )
}

function Listeners({ data }: { readonly data: SecurityData }) {
  const listeners = [
    ['Shared listener', 'for clients and agents', data.shared],
    ['Management listener', 'for operators', data.management],
  ] as const
  return (
    <dl class="facts">
      {listeners.map(([title, use, { authentication, tls, mutual_tls: mutual }]) => (
        <>
          <dt>
            {title}
            <br />
            <small>{use}</small>
          </dt>
          <dd>
            {authentication ? (
              <Badge kind="good">Requires a token</Badge>
            ) : (
              <Badge kind="warning">Open to every client that reaches it</Badge>
            )}
            <br />
            {tls ? (
              <Badge kind="good">{mutual ? 'TLS with client certificates' : 'TLS'}</Badge>
            ) : (
              <Badge kind="neutral">No TLS</Badge>
            )}
          </dd>
        </>
      ))}
    </dl>
  )
}

function Keys({ keys }: { readonly keys: SecurityData['keys'] }) {
  if (keys === null) return <p class="muted">No listener requires a token.</p>
  return (
    <>
      <Failure what="keys" failure={keys.failure} />
      <Facts
        of={{
          Source: (
            <a href={href(['settings'], { search: keys.source })}>
              <code>{keys.source}</code>
            </a>
          ),
          Algorithms: keys.algorithms.length === 0 ? 'those that fit the keys' : keys.algorithms.join(', '),
          Issuer: keys.issuer === '' ? 'any' : <UserText>{keys.issuer}</UserText>,
          Audience: keys.audience.length === 0 ? 'any' : <UserText>{keys.audience.join(', ')}</UserText>,
          Scopes: keys.oauth ? 'restrict their caller' : 'are not used',
          'In force since': <Since value={keys.since} />,
        }}
      />
    </>
  )
}

function PolicyFacts({ policy }: { readonly policy: SecurityData['policy'] }) {
  if (policy === null) {
    return (
      <p>
        <Badge kind="warning">No policy</Badge>{' '}
        <span class="muted">Every caller of the shared listener may do everything.</span>
      </p>
    )
  }
  return (
    <>
      <Failure what="policy" failure={policy.failure} />
      <Facts
        of={{
          File: <UserText>{policy.file}</UserText>,
          Content: plural(policy.rules, 'rule'),
          'In force since': <Since value={policy.since} />,
        }}
      />
    </>
  )
}

function Since({ value }: { readonly value: string }) {
  return (
    <>
      <Time value={value} /> (<Ago value={value} />)
    </>
  )
}

interface FailureProps {
  readonly what: 'keys' | 'policy'
  readonly failure: { readonly time: string; readonly reason: string } | null
}

function Failure({ what, failure }: FailureProps) {
  if (failure === null) return null
  return (
    <Problem>
      The {what} read at <Time value={failure.time} /> could not be used, so the previous one remains in force:{' '}
      <UserText max={2_000}>{failure.reason}</UserText>
    </Problem>
  )
}
