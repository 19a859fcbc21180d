import t from 'tap'
import { attack } from './hostile/attack.ts'
import { escapes } from './hostile/escapes.ts'

void t.test('programs that want out', (t) => attack(t, escapes))
