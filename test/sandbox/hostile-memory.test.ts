import t from 'tap'
import { runHostile } from './hostile/attack.ts'
import { memory } from './hostile/memory.ts'

void t.test('hostile programs cannot exhaust memory', (t) => runHostile(t, memory, { every: 2 }))
