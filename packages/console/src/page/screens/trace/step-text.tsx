import type { ComponentChildren } from 'preact'

import type { GetData } from '../../api/client.ts'
import { UserText } from '../../components/user-text.tsx'
import { href } from '../../router/location.ts'

type Step = GetData<'/api/trace'>['steps'][number]

/** One step of a message as a sentence without its channel. */
export function StepText({ step: { event, party, other } }: { readonly step: Step }) {
  const who = party === '' ? 'an unknown client' : <UserText>{party}</UserText>
  const repeated = other !== undefined && (
    <>
      {' '}
      (<a href={href(['trace'], { id: other })}>the other message</a>)
    </>
  )
  const texts: Readonly<Record<Step['event'], ComponentChildren>> = {
    accepted: <>Accepted from {who}</>,
    delivered: <>Delivered to {who}</>,
    redelivered: <>Delivered again to {who}</>,
    executed: <>Executed by {who}</>,
    rejected: <>Rejected by {who}</>,
    unanswered: <>Not answered: {who}</>,
    redriven: <>Redriven by {who}</>,
  }
  return (
    <>
      {texts[event]}
      {repeated}
    </>
  )
}
