import t from 'tap'
import { openPace } from '../../../core/util/pace.ts'

void t.test('each owner has a separate pace, and may use one second of it at once', async (t) => {
	const pace = openPace(2)
	const begun: string[] = []
	const begin = (owner: string, name: string): Promise<unknown> => pace(owner).then(() => begun.push(name))
	await Promise.all([begin('a', 'a1'), begin('a', 'a2'), begin('a', 'a3'), begin('a', 'a4'), begin('b', 'b1')])
	t.strictSame(begun, ['a1', 'a2', 'b1', 'a3', 'a4'])
})
