import { existsSync } from 'node:fs'

import type { FastifyMount } from '@signalbox/http-kit/fastify'
import type { FastifyPluginCallback } from 'fastify'

/** Returns the entry of a connector for Fastify, from its main entry. In an older checkout the main entry has the plugin. */
export function fastifyEntry(entry: string): string {
  const own = new URL('fastify.ts', entry)
  return existsSync(own) ? own.href : entry
}

/** A connector's Fastify plugin. In a checkout from before connectors were objects the connector is the plugin itself. */
export function pluginOf(connector: FastifyMount | FastifyPluginCallback): FastifyPluginCallback {
  return typeof connector === 'function' ? connector : connector.plugin
}
