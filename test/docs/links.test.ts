/** All links between the pages, including those to headings, are valid. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import t from 'tap'
import { markdown, root } from './pages.ts'

const fenced = /^(\s*)(`{3,})[^`\n]*\n[\s\S]*?\n\s*\2[ \t]*$/gm

/** The anchors of a page, as GitHub generates them from headings. */
function anchorsOf(path: string): Set<string> {
	const seen = new Map<string, number>()
	const anchors = new Set<string>()
	for (const [, heading = ''] of textOf(path).matchAll(/^#{1,6} +(.+?)\s*$/gm)) {
		const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
		const slug = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
		const before = seen.get(slug) ?? 0
		seen.set(slug, before + 1)
		anchors.add(before === 0 ? slug : `${slug}-${before}`)
	}
	return anchors
}

function textOf(path: string): string {
	return readFileSync(new URL(path, root), 'utf8').replaceAll(fenced, '')
}

/** The links and images of a page, without those to other sites. */
function linksOf(path: string): string[] {
	const text = textOf(path).replaceAll(/`[^`\n]*`/g, '')
	return [...text.matchAll(/\]\(<?([^)\s>]+)>?\)/g)].map(([, to = '']) => to).filter((to) => !/^[a-z]+:/.test(to))
}

void t.test('every link leads to an existing file and heading', async (t) => {
	let followed = 0
	for (const page of markdown) {
		for (const link of linksOf(page)) {
			const [to = '', anchor] = decodeURIComponent(link).split('#', 2)
			const target = new URL(to === '' ? page : to, to === '' ? root : new URL(page, root))
			const path = target.href.slice(root.href.length)
			t.ok(target.href.startsWith(root.href) && existsSync(target), `${page}: ${link}`)
			if (anchor !== undefined && existsSync(target) && statSync(target).isFile())
				t.ok(anchorsOf(path).has(anchor), `${page}: ${link} names an existing heading`)
			followed++
		}
	}
	t.ok(followed > 100, `${followed} links`)
})

void t.test('the index lists every page', async (t) => {
	const named = new Set(linksOf('docs/README.md').map((link) => link.split('#', 1)[0]))
	for (const page of markdown) {
		const [, name] = /^docs\/([^/]+\.md)$/.exec(page) ?? []
		if (name !== undefined && name !== 'README.md') t.ok(named.has(name), name)
	}
})
