import { compileQuery } from '@signalbox/http-kit/internal'
import type { Settlement } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { managementRefusal } from './access/operator-surface.ts'
import type { OperatorCall } from './access/operator-surface.ts'
import type { AuditEvent } from './audit/audit-entry.ts'
import { jsonBody, queryOf } from './envelope.ts'
import { invalidParameters, toManagementError } from './errors.ts'
import type { ListenerParts } from './mount-operations.ts'
import type { ActionCall, Target } from './operation.ts'
import { STRICT } from './operation.ts'
import { actionOf, readingRoute } from './operations.ts'
import type { AgentCallStream } from './agent-ports.ts'
import type { ManagementServices } from './ports.ts'
import type { ActionName, ReadingPath } from './route-table.ts'

/** Answers a route that reads. */
export async function serveRoute(
  path: ReadingPath,
  { exchange, operator }: OperatorCall,
  services: ManagementServices,
  { environment }: ListenerParts,
): Promise<void> {
  const route = readingRoute(path)
  const run = route.prepare(queryOf(exchange.request))
  const data = await run({ operator, services, environment })
  if (route.hasBodies) exchange.succeedInParts(data)
  else exchange.succeed(data)
}

const refuseQuery = compileQuery(Type.Object({}, STRICT), invalidParameters)

/** Runs an action and answers. Every admitted request is audited, with its outcome. */
export async function serveAction(
  name: ActionName,
  admitted: OperatorCall,
  { environment, maxWaitMs, services: readyServices, surface }: ListenerParts,
): Promise<void> {
  const services = readyServices()
  const { operator, exchange, body = new Uint8Array(0) } = admitted
  const { hold } = exchange
  let target: Target = {}
  const record = (end: Pick<AuditEvent, 'outcome' | 'code' | 'detail'>): void =>
    environment.audit.record({ client: operator.clientId, action: name, address: operator.address, ...target, ...end })
  let settlement: Settlement | undefined
  let stream: AgentCallStream | undefined
  const call: ActionCall = {
    operator,
    broker: services.broker.as(operator),
    services,
    environment,
    get signal() {
      return admitted.signal
    },
    maxWaitMs,
    hold,
    settleLater: (later) => (settlement = later),
    becomeStream: () => {
      const refusal = hold?.toStream()
      if (refusal !== undefined) throw managementRefusal(refusal)
    },
    answerWith: (answer) => (stream = answer),
  }
  try {
    refuseQuery(queryOf(exchange.request))
    const prepared = actionOf(name).prepare(await jsonBody(exchange, body))
    target = prepared.target
    const { data, detail } = await prepared.run(call)
    record({ outcome: 'success', detail })
    if (stream === undefined) {
      const { settlements } = surface
      exchange.succeedInParts(data, settlement && { settlement, settlements })
      return
    }
    const { expiresAt: endsAt } = operator
    const headers = exchange.takeOver()
    const options = { headers, ...(endsAt === undefined ? {} : { endsAt }), ...(hold === undefined ? {} : { hold }) }
    await stream.pipeTo(exchange.response, options).catch(surface.failed)
  } catch (error) {
    record({ outcome: 'failure', code: toManagementError(error).code })
    throw error
  }
}
