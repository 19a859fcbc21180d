import t from 'tap'
import { columnsOf } from '../../../core/util/columns.ts'

void t.test('the columns of a text on a terminal', (t) => {
	for (const [text, columns] of [
		['abc', 3],
		['é', 1],
		['e\u0301', 1],
		['漢字', 4],
		['한', 2],
		['🚀', 2],
		['👨‍👩‍👧', 2],
		['👍🏽', 2],
		['🇩🇪', 2],
		['🇩🇪🇫🇷', 4],
		['❤️‍🔥', 2],
		['a👨‍👩‍👧b 🇩🇪!', 8],
		// With a joiner between letters.
		['क्‍ष', 2],
	] as const)
		t.equal(columnsOf(text), columns, text)
	t.end()
})
