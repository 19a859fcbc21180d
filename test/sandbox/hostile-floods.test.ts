import t from 'tap'
import { runHostile } from './hostile/attack.ts'
import { floods } from './hostile/floods.ts'

void t.test('hostile programs cannot flood the host', (t) => runHostile(t, floods, { cpu_s: 0.5 }))
