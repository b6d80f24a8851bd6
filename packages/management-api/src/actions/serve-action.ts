import type { Buffer } from 'node:buffer'

import { compileQuery } from '@signalbox/http-kit'
import type { Settlement, Settlements } from '@signalbox/http-kit'
import { takeOver } from '@signalbox/http-kit/fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'

import { managementRefusal } from '../access/management-exchange.ts'
import type { OperatorAdmission } from '../access/operator-admission.ts'
import type { AuditEvent } from '../audit/audit-entry.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import type { Redrives } from '../dead-letters/redrives.ts'
import { sendParts, success } from '../envelope.ts'
import { invalidParameters, toManagementError } from '../errors.ts'
import { jsonBody } from '../json-body.ts'
import type { AgentCallStream, ManagementServices } from '../ports.ts'
import { queryOf } from '../query.ts'
import type { ActionName } from '../route-table.ts'
import type { MessageTrail } from '../trace/message-trail.ts'
import type { ActionCall, Target } from './action.ts'
import { STRICT } from './action.ts'
import { actionOf } from './index.ts'
import type { RunningActions } from './running-actions.ts'

/** The parts that all actions use. */
export interface ActionParts {
  readonly admission: OperatorAdmission
  readonly audit: AuditLog
  readonly settlements: Settlements
  readonly running: RunningActions
  readonly redrives: Redrives
  readonly trail: MessageTrail
  readonly maxWaitMs: number
  /** Reports a failure that no operator gets. */
  readonly failed: (error: unknown) => void
  /** @throws ManagementError NOT_READY */
  readonly services: () => ManagementServices
}

export type ActionRequest = FastifyRequest<{ Body: Buffer | null | undefined }>

const refuseQuery = compileQuery(Type.Object({}, STRICT), invalidParameters)

/** Runs an action and answers. Every admitted request is audited, with its outcome. */
export async function serveAction(
  name: ActionName,
  request: ActionRequest,
  reply: FastifyReply,
  { admission, audit, settlements, running, redrives, trail, maxWaitMs, failed, services }: ActionParts,
): Promise<FastifyReply> {
  const available = services()
  const action = actionOf(name)
  const operator = admission.operator(request)
  let target: Target = {}
  const record = (end: Pick<AuditEvent, 'outcome' | 'code' | 'detail'>): void =>
    audit.record({ client: operator.clientId, action: action.name, address: operator.address, ...target, ...end })
  let settlement: Settlement | undefined
  let stream: AgentCallStream | undefined
  const exchange = admission.exchange(request)
  const { hold } = exchange
  const signal = running.begin(reply.raw)
  const call: ActionCall = {
    operator,
    broker: available.broker.as(operator),
    services: available,
    redrives,
    trail,
    signal,
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
    const prepared = action.prepare(await jsonBody(request, exchange))
    target = prepared.target
    const { data, ...detail } = await prepared.run(call)
    record({ outcome: 'success', ...detail })
    if (stream !== undefined) {
      const { expiresAt: endsAt } = operator
      const headers = takeOver(reply)
      const options = { headers, ...(endsAt === undefined ? {} : { endsAt }), ...(hold === undefined ? {} : { hold }) }
      await stream.pipeTo(reply.raw, options).catch((error: unknown) => failed(error))
      return reply
    }
    const unsettled = settlement === undefined ? undefined : { settlement, settlements }
    return sendParts(reply, exchange, success(data), unsettled)
  } catch (error) {
    record({ outcome: 'failure', code: toManagementError(error).code })
    throw error
  } finally {
    running.finish(reply.raw)
  }
}
