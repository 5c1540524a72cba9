#include "export/flame_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export/text.h"

#define WIDTH 1200.0
#define ROW 18u	   /* height of a frame */
#define TOP 64u	   /* room for the titles */
#define BOTTOM 30u /* and for what is under the mouse */
#define EDGE 10.0
#define NARROW 0.05	/* of a unit: what is less wide is not drawn */
#define DEPTH_MAX 1024u /* rows */
#define LETTER 6.6	/* how wide a letter is about */

/* What is drawn for a node of the tree. */
struct box {
	uint32_t first_child, next; /* 0: none */
	uint64_t value;		    /* with all that it called */
};

struct sibling {
	const char *name;
	uint32_t parent, node;
};

struct drawing {
	const struct tacho__stacks *stacks;
	const struct tacho__flame *flame;
	const struct tacho__sink *sink;
	struct box *boxes; /* by index of node; 0 is the root */
	uint32_t count, rows;
	int error;
};

__attribute__((format(printf, 2, 3))) static void put(struct drawing *d, const char *format, ...)
{
	char text[1024];
	va_list list;
	int size;

	if (d->error)
		return;
	va_start(list, format);
	size = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (size > 0 && (size_t)size < sizeof(text))
		d->error = d->sink->write(d->sink->arg, text, (size_t)size);
}

static void put_text(struct drawing *d, const char *text)
{
	if (!d->error)
		d->error = d->sink->write(d->sink->arg, text, strlen(text));
}

/* Names are valid UTF-8 without controls (text.h); these are what is left to escape. */
static void put_escaped(struct drawing *d, const char *text, size_t size)
{
	for (size_t i = 0; i < size && !d->error;) {
		size_t plain = strcspn(text + i, "<>&\"'");

		if (plain > size - i)
			plain = size - i;
		if (plain)
			d->error = d->sink->write(d->sink->arg, text + i, plain);
		i += plain;
		if (i < size)
			put(d, "&#%d;", (unsigned char)text[i++]);
	}
}

static void put_clean(struct drawing *d, const char *text)
{
	char clean[TACHO__CLEAN_MAX];

	tacho__clean(clean, sizeof(clean), text);
	put_escaped(d, clean, strlen(clean));
}

/* -------------------------------------------------------------------- layout */

/* Children have larger indexes than their parents: the tree only grows. */
static void add_up(struct drawing *d)
{
	for (uint32_t i = d->count; i-- > 0;) {
		const struct tacho__tree_node *n = tacho__stacks_node(d->stacks, i);

		if (!n)
			continue;
		d->boxes[i].value += n->self;
		if (i)
			d->boxes[n->parent].value += d->boxes[i].value;
	}
}

static int by_parent(const void *a, const void *b)
{
	const struct sibling *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Siblings stand in the order of their names, so that the same program looks the same again. */
static int order_children(struct drawing *d)
{
	struct sibling *all = malloc((d->count + 1) * sizeof(*all));
	uint32_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 1; i < d->count; i++) {
		const struct tacho__tree_node *node = tacho__stacks_node(d->stacks, i);

		if (node)
			all[n++] = (struct sibling){tacho__stacks_name(d->stacks, node->name),
						    node->parent, i};
	}
	qsort(all, n, sizeof(*all), by_parent);
	while (n-- > 0) {
		struct box *parent = &d->boxes[all[n].parent];

		d->boxes[all[n].node].next = parent->first_child;
		parent->first_child = all[n].node;
	}
	free(all);
	return 0;
}

static double width_of(const struct drawing *d, uint32_t node)
{
	double total = d->boxes[0].value ? (double)d->boxes[0].value : 1.0;

	return (WIDTH - 2 * EDGE) * ((double)d->boxes[node].value / total);
}

/* ------------------------------------------------------------------- drawing */

static void put_value(struct drawing *d, uint64_t value)
{
	double v = (double)value;

	if (!d->flame->ns)
		put(d, "%" PRIu64 " sample%s", value, value == 1 ? "" : "s");
	else if (v >= 1e9)
		put(d, "%.3f s", v / 1e9);
	else if (v >= 1e6)
		put(d, "%.3f ms", v / 1e6);
	else
		put(d, "%.3f us", v / 1e3);
}

/* The same function has the same colour everywhere. */
static void put_colour(struct drawing *d, const char *name)
{
	uint64_t h = tacho__hash_bytes(name, strlen(name), 7);
	unsigned a = (unsigned)(h & 0xff), b = (unsigned)(h >> 8 & 0xff);
	size_t size = strlen(name);
	int wait = name[0] == '[';
	int kernel = size > 4 && strcmp(name + size - 4, "_[k]") == 0;

	if (d->flame->off_cpu)
		put(d, "hsl(%u,%u%%,%u%%)", (wait ? 250 : 195) + a % 30, 45 + b % 20, 70 + b % 10);
	else
		put(d, "hsl(%u,%u%%,%u%%)", (kernel ? 30u : 0u) + a % 50, 65 + b % 20, 66 + b % 10);
}

/* As much of a name as fits, never half a character. */
static size_t shown_bytes(const char *name, double width)
{
	size_t letters = width > 2 * LETTER + 4 ? (size_t)((width - 4) / LETTER) : 0;
	size_t at = 0;

	for (; name[at] && letters; letters--)
		do
			at++;
		while (((unsigned char)name[at] & 0xc0) == 0x80);
	return at;
}

static void draw(struct drawing *d, uint32_t node, double x, uint32_t depth)
{
	const struct tacho__tree_node *n = tacho__stacks_node(d->stacks, node);
	const char *name = node ? tacho__stacks_name(d->stacks, n->name) : "all";
	double width = width_of(d, node);
	size_t size = strlen(name), shown = shown_bytes(name, width);
	uint32_t y = TOP + (d->rows - 1 - depth) * ROW;

	put_text(d, "<g class=\"f\"><title>");
	put_escaped(d, name, size);
	put_text(d, " (");
	put_value(d, d->boxes[node].value);
	put(d, ", %.2f %%)</title><rect x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%u\" fill=\"",
	    100.0 * width / (WIDTH - 2 * EDGE), x, y, width, ROW - 1);
	put_colour(d, name);
	put(d, "\"/><text x=\"%.3f\" y=\"%u\">", x + 3, y + ROW - 5);
	if (shown < size) {
		shown = shown_bytes(name, width - 2 * LETTER);
		put_escaped(d, name, shown);
		if (shown)
			put_text(d, "..");
	} else {
		put_escaped(d, name, size);
	}
	put_text(d, "</text></g>\n");
}

/* From the root, depth first; `draw_it` 0 only finds out how many rows there are. */
static void walk(struct drawing *d, int draw_it)
{
	struct {
		uint32_t next; /* child to do, 0 none */
		double x;
	} *level = malloc(DEPTH_MAX * sizeof(*level));
	uint32_t depth = 0;

	if (!level) {
		d->error = -ENOMEM;
		return;
	}
	if (draw_it)
		draw(d, 0, EDGE, 0);
	level[0].next = d->boxes[0].first_child;
	level[0].x = EDGE;
	for (;;) {
		uint32_t node = level[depth].next;
		double x = level[depth].x;

		if (!node || d->error) {
			if (!depth--)
				break;
			continue;
		}
		level[depth].next = d->boxes[node].next;
		level[depth].x += width_of(d, node);
		if (width_of(d, node) < NARROW || depth + 1 >= DEPTH_MAX)
			continue;
		if (draw_it)
			draw(d, node, x, depth + 1);
		if (depth + 2 > d->rows)
			d->rows = depth + 2;
		depth++;
		level[depth].next = d->boxes[node].first_child;
		level[depth].x = x;
	}
	free(level);
}

/* ---------------------------------------------------------------------- file */

static const char style[] =
	"<style>\n"
	"text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#111}\n"
	"#title{font-size:16px;font-weight:bold}\n"
	"#subtitle,#info,#matched{fill:#444}\n"
	".b{cursor:pointer;fill:#06c}\n"
	".f{cursor:pointer}.f text{pointer-events:none}\n"
	".f:hover rect{stroke:#000;stroke-width:.7}\n"
	".f.hit rect{fill:#e040fb}\n"
	".f.up{opacity:.55}\n"
	"</style>\n";

/*
 * Zoom: the frame that was clicked and all above it, spread over the whole width; those that it
 * stands on stay, faint. Search: frames whose name contains the text; the share is that of the
 * width they cover together, so a function that calls itself counts once.
 */
static const char script[] =
	"<script><![CDATA[\n"
	"'use strict';(function(){\n"
	"const svg=document.documentElement,W=1180,L=10,C=6.6;\n"
	"const all=[...svg.querySelectorAll('.f')].map(g=>{const r=g.querySelector('rect');\n"
	" return{g,r,t:g.querySelector('text'),name:g.querySelector('title').textContent,\n"
	" x:+r.getAttribute('x')-L,w:+r.getAttribute('width'),y:+r.getAttribute('y')}});\n"
	"const by=id=>svg.getElementById(id),info=by('info'),E=1e-2;let root=all[0];\n"
	"const label=(f,w)=>{const n=f.name.replace(/ \\([^()]*\\)$/,''),c=[...n];\n"
	" const k=Math.floor((w-4)/C);\n"
	" f.t.textContent=c.length<=k?n:k>4?c.slice(0,k-2).join('')+'..':''};\n"
	"function zoom(z){root=z;const s=W/z.w;for(const f of all){\n"
	" const under=f.y>z.y&&f.x<=z.x+E&&f.x+f.w>=z.x+z.w-E;\n"
	" const inside=f.y<=z.y&&f.x>=z.x-E&&f.x+f.w<=z.x+z.w+E;\n"
	" f.g.style.display=under||inside?'':'none';\n"
	" f.g.classList.toggle('up',under);if(!under&&!inside)continue;\n"
	" const x=under?0:(f.x-z.x)*s,w=under?W:f.w*s;\n"
	" f.r.setAttribute('x',L+x);f.r.setAttribute('width',w);\n"
	" f.t.setAttribute('x',L+x+3);label(f,w)}\n"
	" by('reset').style.display=z===all[0]?'none':''}\n"
	"function search(q){const hits=[];for(const f of all){\n"
	" const hit=q&&f!==all[0]&&f.name.toLowerCase().includes(q.toLowerCase());\n"
	" f.g.classList.toggle('hit',!!hit);if(hit)hits.push([f.x,f.x+f.w])}\n"
	" hits.sort((a,b)=>a[0]-b[0]);let sum=0,end=0;for(const[a,b]of hits){\n"
	" if(b>end){sum+=b-Math.max(a,end);end=b}}\n"
	" by('matched').textContent=q?'matched '+(100*sum/W).toFixed(2)+' %':''}\n"
	"function ask(){const q=prompt('Find functions whose name contains:','');\n"
	" if(q!==null)search(q)}\n"
	"for(const f of all){f.g.addEventListener('click',()=>zoom(f));\n"
	" f.g.addEventListener('mouseover',()=>{info.textContent=f.name});\n"
	" f.g.addEventListener('mouseout',()=>{info.textContent=''})}\n"
	"by('reset').addEventListener('click',()=>zoom(all[0]));\n"
	"by('search').addEventListener('click',ask);\n"
	"window.addEventListener('keydown',e=>{if(e.key==='f'&&(e.ctrlKey||e.metaKey)){\n"
	" e.preventDefault();ask()}if(e.key==='Escape'){search('');zoom(all[0])}});\n"
	"by('search').style.display='';by('reset').style.display='none';\n"
	"}())\n"
	"]]></script>\n";

static void put_file(struct drawing *d)
{
	uint32_t height;

	walk(d, 0);
	height = TOP + d->rows * ROW + BOTTOM;
	put(d,
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
	    "width=\"100%%\" viewBox=\"0 0 %.0f %u\" "
	    "preserveAspectRatio=\"xMidYMin meet\" style=\"background:#fff\">\n",
	    WIDTH, height);
	put_text(d, style);
	put_text(d, "<text id=\"title\" x=\"10\" y=\"24\">");
	put_clean(d, d->flame->title);
	put_text(d, "</text>\n<text id=\"subtitle\" x=\"10\" y=\"44\">");
	put_clean(d, d->flame->subtitle);
	put_text(d, "</text>\n"
		    "<text id=\"reset\" class=\"b\" x=\"1010\" y=\"24\" style=\"display:none\">"
		    "show all</text>\n"
		    "<text id=\"search\" class=\"b\" x=\"1090\" y=\"24\" style=\"display:none\">"
		    "find (Ctrl-F)</text>\n"
		    "<text id=\"matched\" x=\"1090\" y=\"44\"></text>\n");
	put(d, "<text id=\"info\" x=\"10\" y=\"%u\"></text>\n", height - 10);
	walk(d, 1);
	put_text(d, script);
	put_text(d, "</svg>\n");
}

int tacho__flame_svg(const struct tacho__stacks *stacks, const struct tacho__flame *flame,
		     const struct tacho__sink *sink)
{
	struct drawing d = {.stacks = stacks, .flame = flame, .sink = sink, .rows = 1};
	int error;

	d.count = stacks->nodes.used;
	d.boxes = calloc(d.count + 1, sizeof(*d.boxes));
	if (!d.boxes)
		return -ENOMEM;
	add_up(&d);
	error = order_children(&d);
	if (!error) {
		put_file(&d);
		error = d.error;
	}
	free(d.boxes);
	return error;
}
