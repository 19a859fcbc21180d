/** Does the reader of the pages notice what a person would? */
import t from 'tap'
import { wholeProgram } from '../../docs/make/help.ts'
import { blocksOf, stepsOf } from './page.ts'
import { gatewayHere } from './place.ts'
import { Reader } from './reader.ts'
import { problemIn } from './svc-words.ts'

void t.test('a page is taken apart', async (t) => {
	const file = t.testdir({
		'page.md': [
			'text',
			'```sh types=abc answers=yes',
			'svc one',
			'```',
			'- list',
			'  ```sh',
			'  svc two',
			'  ```',
			'````markdown file=a/SKILL.md',
			'```js',
			'```',
			'````',
			'```sh needs=systemd',
			'three',
			'```',
			'```json',
			'{}',
			'```',
		].join('\n'),
		'open.md': '```sh\nsvc one\n',
	})
	t.strictSame(stepsOf(`${file}/page.md`), [
		{ kind: 'command', line: 2, text: 'svc one', types: 'abc', answers: 'yes' },
		{ kind: 'command', line: 6, text: 'svc two' },
		{ kind: 'file', line: 9, path: 'a/SKILL.md', text: '```js\n```\n' },
		{ kind: 'elsewhere', line: 13, why: 'systemd', text: 'three' },
	])
	t.equal(blocksOf(`${file}/page.md`).length, 5)
	t.throws(() => stepsOf(`${file}/open.md`), /the fence is not closed/)
})

void t.test('the reader fills in, answers, and stops at what does not work', async (t) => {
	await using reader = new Reader(await gatewayHere())
	const tries = (text: string, more: { types?: string; answers?: string } = {}) =>
		reader.follow({ kind: 'command', line: 1, text, ...more })

	t.match(await tries('svc agents creat ada'), { code: 2 })
	t.match(await tries('curl -s http://127.0.0.1:3000/v1/agents/nobody'), { code: 22, output: /not_found/ })
	t.match(await tries('svc runs show RUN_ID'), { code: 1, output: /nothing .* fills RUN_ID/ })
	t.match(await tries('false | true'), { code: 1 })

	t.match(await tries('svc agents create ada'), { code: 0 })
	t.match(await tries('svc agents delete ada'), { code: 2 }, 'nobody can be asked')
	t.match(await tries('svc vault set PIN', { types: '12345678' }), { code: 0 })
	t.match(await tries('svc run ada hello --detach --json\nsvc runs follow RUN_ID\nsvc runs show RUN_ID'), { code: 0 })
	t.match(await tries('svc agents delete ada', { answers: 'yes' }), { code: 0 })

	await tries('curl -N http://127.0.0.1:3000/v1/nothing')
	await reader.idle()
	t.match(await reader.end(), [/curl -N/], 'what fails in the second terminal')
	await tries('curl -sN http://127.0.0.1:3000/v1/events/stream')
	t.strictSame(await reader.end(), [])
})

void t.test('a command that is only named is looked at', async (t) => {
	const program = await wholeProgram()
	for (const right of [
		'svc agents',
		'svc run ada "Hello --there"',
		'git diff | svc run ada - > a',
		'svc mcp add a b -- npx -y c',
	])
		t.equal(problemIn(right, program), '', right)
	t.equal(problemIn('svc agnts list', program), 'there is no svc agnts')
	t.equal(problemIn('svc agents creat ada', program), 'there is no agents creat')
	t.equal(problemIn('svc runs list ada --stat failed', program), 'list has no option --stat')
})
