import assert from 'node:assert/strict'
import { test } from 'vitest'

import { Roster } from '../src/entries/internal.ts'

test('roster - members stand in the order they came, whoever left', () => {
  const roster = new Roster<string>()
  const places = ['a', 'b', 'c', 'd'].map((name) => roster.enter(name))
  places[1]?.leave()
  places[3]?.leave()
  roster.enter('e')
  assert.deepEqual(roster.members(), ['a', 'c', 'e'])
  assert.equal(roster.size, 3)
  places[0]?.leave()
  assert.equal(roster.first, 'c')
})

test('roster - a place is left once, and an empty roster is as a new one', () => {
  const roster = new Roster<string>()
  const place = roster.enter('a')
  assert.equal(place.leave(), true)
  assert.equal(place.leave(), false)
  assert.equal(roster.size, 0)
  assert.equal(roster.first, undefined)
  roster.enter('b')
  assert.equal(place.leave(), false)
  assert.deepEqual(roster.members(), ['b'])
})
