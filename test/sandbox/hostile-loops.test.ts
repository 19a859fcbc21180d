import t from 'tap'
import { runHostile } from './hostile/attack.ts'
import { loops } from './hostile/loops.ts'

void t.test('hostile programs cannot run forever', (t) => runHostile(t, loops, { every: 2 }))
