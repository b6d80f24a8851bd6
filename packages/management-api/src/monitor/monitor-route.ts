import { compileQuery } from '@signalbox/http-kit'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'

import type { OperatorAdmission } from '../access/operator-admission.ts'
import { managementRefusal } from '../access/management-exchange.ts'
import { ManagementError, upgradeFailed } from '../errors.ts'
import { queryOf } from '../query.ts'
import { monitorFilter, monitorQuery } from './monitor-filter.ts'
import type { Monitors } from './monitors.ts'
import { takeTokenOfSubprotocols } from './subprotocols.ts'
import { Upgrades } from './upgrades.ts'

/** The monitor has two paths. */
export const MONITOR_PATHS = ['/api/monitor', '/v1/stats/attach'] as const

const readQuery = compileQuery(monitorQuery, (problems) => upgradeFailed('the query is invalid', { problems }))

const tokenHook: onRequestHookHandler = (request, _reply, done) => {
  takeTokenOfSubprotocols(request.raw)
  done()
}

/** Adds the live monitor: a WebSocket, available before the server is ready. */
export function addMonitorRoutes(app: FastifyInstance, admission: OperatorAdmission, monitors: Monitors): void {
  const upgrades = new Upgrades(app)
  for (const url of MONITOR_PATHS) {
    app.route({
      method: 'GET',
      url,
      exposeHeadRoute: false,
      onRequest: [tokenHook, admission.hook('ReadOnly', url)],
      async handler(request, reply) {
        const upgrade = upgrades.of(request)
        if (upgrade === undefined) throw upgradeRequired(request)
        const filter = monitorFilter(readQuery(queryOf(request)))
        if (!monitors.hasRoom)
          throw new ManagementError('MONITOR_LIMIT', 'the maximum number of monitors is open; close one first')
        const { expiresAt } = admission.operator(request)
        const exchange = admission.exchange(request)
        const refusal = exchange.hold?.toStream()
        if (refusal !== undefined) throw managementRefusal(refusal)
        await upgrades.accept(request, upgrade, (webSocket, stream) => {
          reply.hijack()
          webSocket.once('close', exchange.outliveResponse())
          monitors.add(webSocket, stream, filter, expiresAt)
        })
        return reply
      },
    })
  }
}

/** Returns the refusal of a plain GET, by which clients whose handshake failed learn what is wrong with the query. */
function upgradeRequired(request: FastifyRequest): ManagementError {
  let problem = ''
  try {
    monitorFilter(readQuery(queryOf(request)))
  } catch (error) {
    if (!(error instanceof ManagementError)) throw error
    problem = `; ${error.message}`
  }
  const text = `this path serves WebSockets only; connect with a WebSocket client${problem}`
  return new ManagementError('UPGRADE_REQUIRED', text)
}
