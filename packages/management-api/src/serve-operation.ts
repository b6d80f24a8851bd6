import { compileQuery } from '@signalbox/http-kit/internal'
import type { Settlement } from '@signalbox/http-kit'
import { takeOver } from '@signalbox/http-kit/fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'

import { managementRefusal } from './access/operator-admission.ts'
import type { AuditEvent } from './audit/audit-entry.ts'
import { jsonBody, queryOf, sendEnvelope, sendParts, success } from './envelope.ts'
import { invalidParameters, toManagementError } from './errors.ts'
import type { ActionRequest, ListenerParts } from './mount-operations.ts'
import type { ActionCall, Target } from './operation.ts'
import { STRICT } from './operation.ts'
import { actionOf, readingRoute } from './operations.ts'
import type { AgentCallStream, ManagementServices } from './ports.ts'
import type { ActionName, ReadingPath } from './route-table.ts'

/** Answers a route that reads. */
export async function serveRoute(
  path: ReadingPath,
  request: FastifyRequest,
  reply: FastifyReply,
  services: ManagementServices,
  { admission, environment }: ListenerParts,
): Promise<FastifyReply> {
  const route = readingRoute(path)
  const run = route.prepare(queryOf(request))
  const data = await run({ operator: admission.operator(request), services, environment })
  if (!route.hasBodies) return sendEnvelope(reply, 200, success(data))
  return sendParts(reply, admission.exchange(request), success(data))
}

const refuseQuery = compileQuery(Type.Object({}, STRICT), invalidParameters)

/** Runs an action and answers. Every admitted request is audited, with its outcome. */
export async function serveAction(
  name: ActionName,
  request: ActionRequest,
  reply: FastifyReply,
  { admission, environment, settlements, running, maxWaitMs, failed, services: readyServices }: ListenerParts,
): Promise<FastifyReply> {
  const services = readyServices()
  const operator = admission.operator(request)
  const exchange = admission.exchange(request)
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
    signal: running.begin(reply.raw),
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
    refuseQuery(queryOf(request))
    const prepared = actionOf(name).prepare(await jsonBody(request, exchange))
    target = prepared.target
    const { data, detail } = await prepared.run(call)
    record({ outcome: 'success', detail })
    if (stream !== undefined) {
      const { expiresAt: endsAt } = operator
      const headers = takeOver(reply)
      const options = { headers, ...(endsAt === undefined ? {} : { endsAt }), ...(hold === undefined ? {} : { hold }) }
      await stream.pipeTo(reply.raw, options).catch((error: unknown) => failed(error))
      return reply
    }
    return sendParts(reply, exchange, success(data), settlement && { settlement, settlements })
  } catch (error) {
    record({ outcome: 'failure', code: toManagementError(error).code })
    throw error
  } finally {
    running.finish(reply.raw)
  }
}
