import t from 'tap'
import { dialectOf, literalOf } from '../../../plugins/discord/dialect.ts'
import { assertCpuTime } from '../../support/cpu-time.ts'

void t.test('text that Discord supports is not changed', async (t) => {
	for (const text of [
		'# One\n## Two\n### Three\n\n- a *b* **c** ~~d~~ `e`\n> quote\n[a](https://example.com)\n1. x',
		'```md\n#### no heading\n| a | b |\n|---|---|\n__x__ || y ||\n```',
		'~~~\n![a](b)\n```\n#### x\n~~~',
		'`![a](b)` and ``a || b`` and `__init__`',
		'a | b without a table\nsnake__case__name and ___',
		'',
	])
		t.equal(dialectOf(text, 2000), text)
})

void t.test('other Markdown is converted', async (t) => {
	for (const [text, converted] of [
		['#### Four', '**Four**'],
		['###### **Six** `x`', '**Six `x`**'],
		['see ![a cat](https://example.com/cat.png)', 'see [a cat](https://example.com/cat.png)'],
		['__bold__ and **bold**', '**bold** and **bold**'],
		['a || b || c', 'a \\|\\| b \\|\\| c'],
		[
			'Before\n\n| Name | Price |\n|:-----|------:|\n| Tea | 1 |\n| Milk \\| honey | 12 |\n\nAfter',
			'Before\n\n```\nName          Price\n------------  -----\nTea           1\nMilk | honey  12\n```\n\nAfter',
		],
		['a|b\n-|-\n1|2', '```\na  b\n-  -\n1  2\n```'],
	] as const)
		t.equal(dialectOf(text, 2000), converted)
})

void t.test('plain text is escaped', async (t) => {
	t.equal(
		literalOf('# a *b* _c_ `d` ~~e~~ ||f|| \\ 1-2\n> g\n  - h # i', 2000),
		String.raw`\# a \*b\* \_c\_ \`d\` \~\~e\~\~ \|\|f\|\| \\ 1-2
\> g
  \- h # i`,
	)
	t.equal(literalOf('*'.repeat(2000), 2000), '*'.repeat(2000))
})

void t.test('wide characters count as two columns of a table', async (t) => {
	const table = '|城市|b|\n|-|-|\n|東京都|1|\n|Ōsaka|2|\n|👍|3|'
	t.equal(dialectOf(table, 2000), '```\n城市    b\n------  -\n東京都  1\nŌsaka   2\n👍      3\n```')
})

void t.test('the conversion never exceeds the limit', async (t) => {
	const table = '|a|b|\n|-|-|\n|1|2|'
	t.equal(dialectOf(table, table.length), table)
	const many = 'a||b'.repeat(500)
	t.equal(dialectOf(many, 2000), many)
})

void t.test('the conversion takes linear time', async (t) => {
	for (const unit of ['|', '`', '__', '![', '#', '|-', '\\|', '_ ', '~~~\n', '__a', '` _']) {
		const [short, long] = [unit.repeat(10_000), unit.repeat(80_000)]
		// The same amount of text at once and in eight pieces: quadratic time would be eight times as much.
		await assertCpuTime(t, JSON.stringify(unit), {
			work: () => dialectOf(long, Number.MAX_SAFE_INTEGER),
			reference: () => {
				for (let n = 0; n < 8; n++) dialectOf(short, Number.MAX_SAFE_INTEGER)
			},
			times: 4,
			floor: 10,
		})
	}
})
