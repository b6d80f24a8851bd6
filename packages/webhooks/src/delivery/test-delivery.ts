import { randomUUID } from 'node:crypto'

import type { Message } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { messageOf } from '@signalbox/broker-core/internal'

import type { WebhookFormat } from '../format.ts'
import type { EndpointPolicy } from '../safety/endpoint-policy.ts'
import type { SecretBox } from '@signalbox/http-kit'
import { signedHeaders } from '../secrets/signature.ts'
import type { KnownSubscription } from '../subscription/subscription-index.ts'
import { openSecrets, validAt } from './attempt.ts'
import type { EndpointClient } from './endpoint-client.ts'

/** The answer of an endpoint to a test. */
export interface TestResult {
  /** The status of the answer; `undefined` without one. */
  readonly status?: number
  /** The reason for a failed test. */
  readonly error?: string
}

interface Parts {
  readonly box: SecretBox
  readonly policy: EndpointPolicy
  readonly client: EndpointClient
}

/** Sends a test message to the endpoint of a subscription, signed as a delivery. Never rejects. */
export async function sendTest(
  known: KnownSubscription,
  format: WebhookFormat,
  { box, policy, client }: Parts,
): Promise<TestResult> {
  const { id, record } = known
  const testId = `test_${randomUUID()}`
  const message: Message = {
    id: testId,
    clientId: record.owner,
    channel: record.channel,
    timestamp: Date.now(),
    body: encodeText('{"test":true}'),
    metadata: '',
    tags: {},
  }
  const encoded = format.encode(record.type, [message], { id, notes: record.notes ?? '' })
  if (encoded === undefined) return { error: 'the format has no form for a test message' }
  const { headers, body } = encoded
  const now = Date.now()
  try {
    const signed = signedHeaders(validAt(openSecrets(known, box), now), testId, now, body)
    const url = await policy.check(record.endpoint, record.account)
    const request = { method: 'POST', headers: { ...headers, ...signed }, body } as const
    const { status } = await client.send(client.to(url.href), request)
    return { status }
  } catch (error) {
    return { error: messageOf(error) }
  }
}
