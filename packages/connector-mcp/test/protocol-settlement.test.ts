import { describe } from 'vitest'

import { hostSettlementCases, settlementCases } from './settlement-cases.ts'

describe('M14 on fastify', () => {
  settlementCases('fastify')
})

// All of them on node:http are in protocol-settlement.stress.ts.
describe('M14 on node', () => {
  hostSettlementCases('node')
})

describe('M14 on express', () => {
  hostSettlementCases('express')
})
