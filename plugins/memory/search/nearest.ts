import type { Scored } from './top-scores.ts'
import type { Graph } from './graph.ts'
import type { Vectors } from './vectors.ts'

/** The cost of a candidate from the graph, in comparisons of two vectors. */
const GRAPH_COST = 8
/** Safety factor for the number of candidates from the graph if only some memories are allowed. */
const SPARE = 1.5

export interface NearestQuery {
	query: Float32Array
	/** With the query. */
	cosine: (ordinal: number) => number
	most: number
	/** The least cosine. */
	floor: number
	/** Only these; absent: any. */
	allowed?: ReadonlySet<number> | undefined
}

/**
 * The nearest vectors, in no order. Without a graph, all are compared. If only some are allowed, the graph returns so many
 * candidates that enough allowed ones should be among them. If that would cost more than comparing every allowed vector, or
 * finds too few, every allowed vector is compared.
 */
export function nearest(
	vectors: Vectors,
	graph: Graph | undefined,
	{ query, cosine, most, floor, allowed }: NearestQuery,
): readonly Scored[] {
	if (!graph) return vectors.scan(cosine, most, floor, allowed)
	if (!allowed) return vectors.scan(cosine, most, floor, graph.near(query, most))
	const candidates = Math.ceil((most * SPARE * vectors.count) / Math.max(1, allowed.size))
	if (candidates * GRAPH_COST < allowed.size) {
		const found = graph.near(query, candidates).filter((ordinal) => allowed.has(ordinal))
		if (found.length >= most) return vectors.scan(cosine, most, floor, found)
	}
	return vectors.scan(cosine, most, floor, allowed)
}
