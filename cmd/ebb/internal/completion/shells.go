package completion

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The scripts find the place by walking the words before the cursor: a word that is a command of the place leads on, a flag that takes
// a value takes the next word with it.

func bash(name string, places []place) string {
	var b strings.Builder
	fn := "_" + name + "_complete"
	fmt.Fprintf(&b, "# bash completion of %s; load it with: source <(%s completion bash)\n%s() {\n", name, name, fn)
	b.WriteString("\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} place='' i word next\n")
	b.WriteString("\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tword=${COMP_WORDS[i]}\n")
	names, choices := valued(places)
	fmt.Fprintf(&b, "\t\tcase $word in\n\t\t%s) ((i++)); continue ;;\n\t\t-*) continue ;;\n\t\tesac\n", strings.Join(names, "|"))
	b.WriteString("\t\tnext=${place:+$place }$word\n\t\tcase $next in\n")
	fmt.Fprintf(&b, "\t\t%s) place=$next ;;\n\t\tesac\n\tdone\n", paths(places, "|"))
	b.WriteString("\tcase $prev in\n")
	for _, flag := range slices.Sorted(maps.Keys(choices)) {
		fmt.Fprintf(&b, "\t%s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;\n", flag, quote(strings.Join(choices[flag], " ")))
	}
	fmt.Fprintf(&b, "\t%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n\tesac\n", strings.Join(names, "|"))
	b.WriteString("\tlocal words=''\n\tcase $place in\n")
	for _, p := range places {
		fmt.Fprintf(&b, "\t%s) words=%s ;;\n", quote(p.path), quote(strings.Join(p.words(), " ")))
	}
	b.WriteString("\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n")
	fmt.Fprintf(&b, "complete -o default -F %s %s\n", fn, name)
	return b.String()
}

// paths lists the places below the program as patterns.
func paths(places []place, sep string) string {
	var out []string
	for _, p := range places {
		if p.path != "" {
			out = append(out, quote(p.path))
		}
	}
	return strings.Join(out, sep)
}

func zsh(name string, places []place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# zsh completion of %s; put it as _%s into a folder of $fpath\n_%s() {\n", name, name, name, name)
	b.WriteString("\tlocal place='' word next prev=${words[CURRENT-1]}\n\tlocal -i i\n\tlocal -a found\n")
	names, choices := valued(places)
	fmt.Fprintf(&b, "\tfor ((i = 2; i < CURRENT; i++)); do\n\t\tword=${words[i]}\n\t\tcase $word in\n\t\t%s) ((i++)); continue ;;\n\t\t-*) continue ;;\n\t\tesac\n",
		strings.Join(names, "|"))
	fmt.Fprintf(&b, "\t\tnext=${place:+$place }$word\n\t\tcase $next in\n\t\t%s) place=$next ;;\n\t\tesac\n\tdone\n", paths(places, "|"))
	b.WriteString("\tcase $prev in\n")
	for _, flag := range slices.Sorted(maps.Keys(choices)) {
		fmt.Fprintf(&b, "\t%s) compadd -- %s; return ;;\n", flag, strings.Join(choices[flag], " "))
	}
	fmt.Fprintf(&b, "\t%s) _files; return ;;\n\tesac\n\tcase $place in\n", strings.Join(names, "|"))
	for _, p := range places {
		fmt.Fprintf(&b, "\t%s) found=(", quote(p.path))
		for _, d := range p.described() {
			// _describe splits at the first colon.
			fmt.Fprintf(&b, "\n\t\t%s", quote(d.word+":"+strings.ReplaceAll(d.help, ":", `\:`)))
		}
		b.WriteString("\n\t\t) ;;\n")
	}
	fmt.Fprintf(&b, "\tesac\n\t_describe %s found\n}\n", quote(name))
	fmt.Fprintf(&b, "if [ \"$funcstack[1]\" = %s ]; then _%s \"$@\"; else compdef _%s %s; fi\n", quote("_"+name), name, name, name)
	return b.String()
}

func fish(name string, places []place) string {
	var b strings.Builder
	at := "__" + name + "_at"
	names, choices := valued(places)
	fmt.Fprintf(&b, "# fish completion of %s; put it into ~/.config/fish/completions/%s.fish\nfunction %s\n", name, name, at)
	b.WriteString("\tset -l place\n\tset -l skip 0\n\tfor word in (commandline -opc)[2..-1]\n")
	fmt.Fprintf(&b, "\t\tif test $skip -eq 1\n\t\t\tset skip 0\n\t\t\tcontinue\n\t\tend\n\t\tif contains -- $word %s\n\t\t\tset skip 1\n\t\t\tcontinue\n\t\tend\n",
		strings.Join(names, " "))
	b.WriteString("\t\tstring match -q -- '-*' $word; and continue\n\t\tset -l next (string join ' ' $place $word)\n")
	fmt.Fprintf(&b, "\t\tcontains -- $next %s; and set place $next\n\tend\n\ttest \"$place\" = \"$argv[1]\"\nend\ncomplete -c %s -f\n", paths(places, " "), name)
	for _, p := range places {
		here := fmt.Sprintf("complete -c %s -n %s", name, fishQuote(at+" "+fishQuote(p.path)))
		for _, c := range p.children {
			fmt.Fprintf(&b, "%s -a %s -d %s\n", here, c.Name, fishQuote(c.Help))
		}
		for _, c := range p.choices {
			fmt.Fprintf(&b, "%s -a %s\n", here, c)
		}
		for _, f := range p.flags {
			fmt.Fprintf(&b, "%s -l %s -d %s", here, f.Name, fishQuote(f.Help))
			switch {
			case choices["--"+f.Name] != nil && f.Enum != "":
				fmt.Fprintf(&b, " -x -a %s", fishQuote(strings.Join(choices["--"+f.Name], " ")))
			case !f.IsBool():
				b.WriteString(" -r -F")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
