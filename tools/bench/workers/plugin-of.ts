import type { Connector } from '@signalbox/http-kit'
import type { FastifyPluginCallback } from 'fastify'

/** A connector's Fastify plugin. In a checkout from before connectors were objects the connector is the plugin itself. */
export function pluginOf(connector: Connector | FastifyPluginCallback): FastifyPluginCallback {
  return typeof connector === 'function' ? connector : connector.plugin
}
