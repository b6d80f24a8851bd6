import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { weighted } from '../grammar/pieces.ts'
import { a2aStep, registryStep } from '../grammar/requests/agents.ts'
import { cloudEventStep } from '../grammar/requests/cloud-events.ts'
import { managementStep } from '../grammar/requests/management.ts'
import { eventsStep, mcpStep } from '../grammar/requests/mcp.ts'
import { rawStep } from '../grammar/requests/sockets.ts'
import { natsTarget, serverTarget } from '../server/server-target.ts'
import type { Session, Step } from '../server/session.ts'

function sessions(step: Arbitrary<Step>): Arbitrary<Session> {
  return fc.record({
    parallel: fc.constantFrom(true, true, true, false),
    steps: fc.array(step, { minLength: 1, maxLength: 12, size: 'max' }),
  })
}

export const serverTargets = [
  serverTarget(
    'server-http',
    'a running server: every route of the shared listener',
    sessions(fc.oneof(mcpStep, cloudEventStep, registryStep, a2aStep, eventsStep)),
  ),
  serverTarget(
    'server-agents',
    'a running server: agents with arbitrary answers',
    sessions(weighted([8, a2aStep], [1, registryStep])),
  ),
  serverTarget(
    'server-management',
    'a running server: the management listener, and its view of the shared one',
    sessions(fc.oneof({ weight: 3, arbitrary: managementStep }, mcpStep, cloudEventStep)),
  ),
  serverTarget(
    'server-sockets',
    'a running server: bytes that are hardly HTTP',
    sessions(fc.oneof({ weight: 4, arbitrary: rawStep }, mcpStep)),
  ),
  // Without a nats-server its targets are skipped.
  ...(NATS_SERVER === undefined
    ? []
    : [
        natsTarget(
          'server-nats',
          'a running server over a nats-server: both listeners',
          sessions(fc.oneof(mcpStep, cloudEventStep, managementStep, eventsStep)),
        ),
      ]),
]
