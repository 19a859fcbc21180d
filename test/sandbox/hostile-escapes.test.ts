import t from 'tap'
import { runHostile } from './hostile/attack.ts'
import { escapes } from './hostile/escapes.ts'

void t.test('hostile programs cannot escape', (t) => runHostile(t, escapes))
